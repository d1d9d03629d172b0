"""What `import bigcn` loads, and what it must not."""

import subprocess
import sys

OPTIONAL = ("typer", "rich", "matplotlib", "pandas", "jinja2")
COUNT = f"import sys; print(*sorted(set({OPTIONAL}) & set(sys.modules)))"


def loaded_after(statement):
    command = [sys.executable, "-W", "ignore", "-c", f"{statement}; {COUNT}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_the_library_needs_nothing_of_the_command_line():
    # What its dependencies load on their own account is not for it to say.
    assert loaded_after("import bigcn") <= loaded_after("import torch_geometric, torch_geometric.nn, sklearn, scipy")


def test_the_library_imports_where_the_command_line_is_not_installed():
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in ("typer", "rich", "matplotlib", "pandas"))
    code = f"import torch_geometric.nn, sklearn, sys; {blocked}; import bigcn; print(*bigcn.__all__)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"BiGCN", "BiGCNConv"} <= set(done.stdout.split())


def test_public_names_exist():
    import bigcn

    for name in bigcn.__all__:
        assert getattr(bigcn, name) is not None
