"""Who carries out the runs of a command; what Ray does with them is tested with the executor."""

import json
import socket
import sys

import pytest

from bigcn.cli.executors import executor_device, make_executor
from bigcn.experiments.process_executor import ProcessExecutor

QUICK = ("--models", "mlp", "--seeds", "1", "--max-epochs", "2", "--device", "cpu")
COMMANDS = {"compare": ("compare", "digits", *QUICK), "reproduce": ("reproduce", "node-table", "--device", "cpu")}


@pytest.fixture
def closed_port():
    """A port of this machine where nobody listens."""
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))  # taken, so that nobody else comes to listen
        yield mine.getsockname()[1]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_bad_options_are_one_sentence(bigcn, command):
    for name in ("cloud", "local:0", "local:two", "ray:2"):
        sentence = f"bigcn: '--executor' must be local, local:N for N processes, or ray (got '{name}')\n"
        assert bigcn(*command, "--executor", name).err == sentence
    outcome = bigcn(*command, "--ray-address", "127.0.0.1:6379")
    assert (outcome.code, outcome.err) == (2, "bigcn: '--ray-address' needs '--executor ray'\n")


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_unreachable_cluster_is_one_sentence(bigcn, closed_port, scheme):
    address = f"{scheme}127.0.0.1:{closed_port}"
    outcome = bigcn(*COMMANDS["compare"], "--executor", "ray", "--ray-address", address)
    assert outcome.code == 2
    assert outcome.err == f"bigcn: no Ray cluster can be reached at {address}: Connection refused\n"
    assert outcome.out == ""


def test_the_environment_names_a_cluster_too(bigcn, closed_port, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port}")
    outcome = bigcn(*COMMANDS["compare"], "--executor", "ray")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "no Ray cluster can be reached" in outcome.err


def test_without_ray(bigcn, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    outcome = bigcn(*COMMANDS["compare"], "--executor", "ray")
    assert (outcome.code, outcome.err) == (2, 'bigcn: the Ray executor needs Ray: pip install "bigcn[ray]"\n')
    assert bigcn(*COMMANDS["compare"], "--json").code == 0
    # What is stored needs nobody to carry it out.
    stored = bigcn(*COMMANDS["compare"], "--json", "--executor", "ray")
    assert stored.code == 0
    assert len(json.loads(stored.out)["rows"]) == 1


def test_processes_of_this_machine():
    with make_executor("local:3", "", minutes=1) as executor:
        assert isinstance(executor, ProcessExecutor)
        assert executor.processes == 3
        assert executor.deadline is not None


def test_gpus_are_those_of_the_cluster(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert executor_device("cuda", "ray") == "cuda"
    assert executor_device("auto", "ray") == "cpu"
    with pytest.raises(ValueError, match="needs a GPU"):
        executor_device("cuda", "local")
