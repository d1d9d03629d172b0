"""The help of every command has an example of it."""

from collections.abc import Iterator

import pytest
from typer.main import get_command

from bigcn.cli import app


def commands() -> Iterator[tuple[str, ...]]:
    yield ()
    for name, command in get_command(app).commands.items():
        yield (name,)
        yield from ((name, inner) for inner in getattr(command, "commands", {}))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_help_has_an_example(bigcn, words):
    outcome = bigcn(*words, "--help")
    assert outcome.code == 0
    assert f"Example:  {' '.join(('bigcn', *words))} " in outcome.out
