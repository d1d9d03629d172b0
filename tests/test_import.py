"""What `import bigcn` loads, and what it must not."""

import subprocess
import sys

import bigcn

OPTIONAL = ("typer", "rich", "matplotlib", "pandas", "jinja2")
# What the dependencies load on their own account is not for the library to say; after them, nothing optional may be
# asked for, whether it is installed or not.
PROGRAM = f"""
import sys
import sklearn, torch_geometric.nn
for name in {OPTIONAL}:
    sys.modules[name] = None
import bigcn
after = {{name for name in {OPTIONAL} if sys.modules.get(name) is not None}}
assert not after, after
print(*bigcn.__all__)
"""


def test_the_library_needs_nothing_of_the_command_line():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"BiGCN", "BiGCNConv"} <= set(done.stdout.split())


def test_public_names_exist():
    for name in bigcn.__all__:
        assert getattr(bigcn, name) is not None
