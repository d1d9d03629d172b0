"""The command `bigcn`, also as `python -m bigcn`."""

import sys


def main() -> None:
    """Runs the command line, or says what it needs."""
    try:
        from bigcn.cli import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in (
            "typer",
            "rich",
            "pandas",
            "matplotlib",
            "jinja2",
        ):
            raise
        sys.exit(f"bigcn: the command line needs {error.name}: pip install 'bigcn[cli]'")
    run()


if __name__ == "__main__":
    main()
