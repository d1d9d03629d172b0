import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bigcn.distributed import Processes, joined, partition_data
from bigcn.distributed.processes import LostProcess

PROGRAM = Path(__file__).with_name("restarted.py")


def torchrun(*arguments, restarts=0):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [f"--max-restarts={restarts}", str(PROGRAM), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment.pop("RANK", None)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


def test_when_one_process_is_killed_the_others_stop_with_a_sentence(spread, graphs, tmp_path):
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", 3, split=split)
    found = spread("killed", 3, codes=(3, -9), shards=str(tmp_path / "shards"))
    assert found[1] is None
    for rank in (0, 2):
        assert re.fullmatch(
            rf"process {rank + 1} of 3 lost another one while training epoch [34], and stops", found[rank]["lost"]
        )


def test_torchrun_restarts_a_killed_run_from_its_last_state_to_the_same_end(spread, graphs, tmp_path):
    data, split = graphs.random()
    partition_data(data, tmp_path / "shards", 2, split=split)
    undisturbed = spread("run", 2, shards=str(tmp_path / "shards"), epochs=12)[0]
    killed = torchrun(tmp_path / "shards", tmp_path / "model", tmp_path / "out.pt", 7, restarts=1)
    assert killed.returncode == 0, killed.stderr
    said = [line for line in killed.stderr.splitlines() if line.startswith("bigcn: ")]
    assert len(said) == 1
    assert re.match(r"bigcn: process 1 of 2 (lost another one|was told to stop) while training epoch [78]", said[0])
    resumed = torch.load(tmp_path / "out.pt", weights_only=False)
    assert resumed["resumed"] == 4
    assert resumed["result"].curves["loss"] == undisturbed["losses"]
    assert resumed["result"].metrics == undisturbed["metrics"]
    assert all(torch.equal(value, undisturbed["state"][name]) for name, value in resumed["state"].items())
    assert not list(tmp_path.glob("*.run.safetensors"))


def test_rows_for_oneself_arrive_and_do_not_count_as_sent(spread):
    for rank, part in enumerate(spread("counted", 3)):
        assert part["received"][:, 0].tolist() == [float(other) for other in range(3) for _ in range(rank + 1)]
        assert part["traffic"] == {"pairs": (6 - (rank + 1)) * 3 * 8}


def test_without_torchrun_there_is_one_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with joined() as processes:
        assert (processes.rank, processes.size, processes.leads) == (0, 1, True)
        block = torch.randn(3, 2)
        assert processes.exchange(block, [3], [3], "hops")() is block
        assert processes.total(block) is block
        assert processes.gather("a") == ["a"]
        assert not processes.traffic


def test_errors_that_are_not_of_the_connection_stay_what_they_are(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    processes = Processes()
    with pytest.raises(RuntimeError, match="mat1 and mat2"), processes.watched():
        torch.ones(2, 3) @ torch.ones(2, 3)
    with pytest.raises(LostProcess, match="while starting"), processes.watched():
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1")
