"""The examples in the docstrings, of every module that can be imported."""

import doctest
import importlib
import pkgutil

import pytest
import torch

import bigcn

OPTIONAL = {"typer", "rich", "pandas", "pyarrow", "matplotlib", "jinja2", "triton"}
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(bigcn.__path__, "bigcn.", onerror=lambda name: None)
    if not module.name.endswith("__main__")
)


def load(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{name} needs {error.name}")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    module = load(name)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_examples_are_found():
    with_examples = {
        name
        for name in ("bigcn.filters", "bigcn.nn.bigcn")
        if any(found.examples for found in doctest.DocTestFinder().find(load(name)))
    }
    assert with_examples == {"bigcn.filters", "bigcn.nn.bigcn"}
    assert {"bigcn.filters", "bigcn.nn.bigcn", "bigcn.feature_graphs.base"} <= set(MODULES)
