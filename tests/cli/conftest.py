import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bigcn.__main__ import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def bigcn(monkeypatch, capsys, tmp_path) -> Callable[..., Outcome]:
    """Runs the command in an empty folder, as a shell would."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["bigcn", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
