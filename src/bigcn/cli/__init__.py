"""The command line: one module a command."""

import sys
import warnings
from typing import Any

import typer
import typer.core

from bigcn import __version__
from bigcn.cli import bench, compare, datasets, denoise, links, partition, predict, report, reproduce, train


class _Commands(typer.core.TyperGroup):
    """The commands; one that is interrupted says so."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            goes_on = ctx.invoked_subcommand in ("compare", "reproduce")
            more = "; finished runs are stored, and the same command goes on from there" if goes_on else ""
            print(f"bigcn: interrupted{more}", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="bigcn",
    cls=_Commands,
    help="Learning on graphs whose features or edges cannot be trusted.\n\n"
    "Example:  bigcn compare digits --models bigcn,gcn,mlp --seeds 2",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compare")(compare.compare)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("denoise")(denoise.denoise)
app.command("links")(links.links)
app.command("partition")(partition.partition)
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report.report)
app.command("bench")(bench.bench)
app.add_typer(datasets.app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bigcn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    pass


def run() -> None:
    """Runs a command; bad input ends with one sentence and exit code 2, never with a traceback."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    try:
        sys.exit(app(prog_name="bigcn", standalone_mode=False))  # also as `python -m bigcn`
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"bigcn: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except ValueError as error:
        print(f"bigcn: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if not hasattr(error, "format_message"):  # it is not about the words on the command line
            raise
        if sentence := _sentence(error):
            print(sentence, file=sys.stderr)
        sys.exit(2)


def _sentence(error: Any) -> str:
    """Returns what is wrong with the words on the command line; if there are none, the help was shown instead."""
    message: str = error.format_message()
    if not message:
        return ""
    context = getattr(error, "ctx", None)  # only mistakes in the words of a command have one
    help = "" if context is None else f"; see '{context.command_path} --help'"
    return f"bigcn: {message[:1].lower()}{message[1:].rstrip('.')}{help}"
