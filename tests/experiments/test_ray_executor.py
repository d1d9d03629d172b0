"""Units as Ray tasks, on a real cluster of two workers."""

import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import torch

from bigcn.datasets import DatasetUnavailable
from bigcn.experiments import ray_executor
from bigcn.experiments.comparison import Comparison, run_comparison
from bigcn.experiments.execution import LocalExecutor, Unit, execute, make_units, run_unit
from bigcn.experiments.ray_executor import RayError, RayExecutor
from bigcn.experiments.store import RunStore

ray = pytest.importorskip("ray")
# One cluster at a time: in one worker of pytest-xdist if it groups tests, and behind a lock if it does not.
pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def client_port():
    """Where the cluster answers those who are not in it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def cluster(client_port):
    """The address of a cluster of two workers that an executor has connected this process to."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="bigcn-", dir="/tmp")  # short, since sockets are in it
    with pytest.MonkeyPatch.context() as patch, Path(tempfile.gettempdir(), "bigcn-ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        # Ray forks a server for each client while gRPC's threads are busy, and gRPC's fork handlers may end it at once.
        patch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")
        patch.setenv("RAY_worker_niceness", "0")  # nice workers would wait for other tests
        # Where the cluster notes its address, a folder that Ray itself does not make.
        patch.setenv("RAY_TMPDIR", folder)
        Path(folder, "ray").mkdir()
        # The same for all tests, since a worker serves one environment only; relative, as people type it.
        patch.setenv("BIGCN_DATA", os.path.relpath(folder))
        head = {"num_cpus": 2, "include_dashboard": False, "temp_dir": folder, "ray_client_server_port": client_port}
        started = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": 128 * 2**20})
        with RayExecutor(started.address) as executor:
            assert list(executor.run(make_units(specs(), together=False)[:1]))
            yield started.address
        assert not ray.is_initialized()
        started.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def specs(models=("gcn", "mlp"), seeds=(5, 10), **changes):
    arguments = {"dataset": "digits", "models": models, "seeds": seeds, "training": {"max_epochs": 8}} | changes
    return Comparison(**arguments).specs()


def outcomes(results):
    """All that does not depend on when, where and how fast a run was."""
    return [(result.metrics, result.status, result.epochs, result.details) for result in results]


@pytest.mark.parametrize("together", [False, True])
def test_results_are_those_of_this_process(cluster, tmp_path, together):
    listed = specs(("gcn", "bigcn:exact+spectral"), case="noise-level", values=(0.2, 0.5))
    stored = {}
    for name, executor in {"local": LocalExecutor(), "ray": RayExecutor()}.items():
        with RunStore(tmp_path / name) as store:
            stored[name] = outcomes(execute(listed, store, executor=executor, together=together))
            assert [len(store.history(spec)) for spec in listed] == [1] * len(listed)
    assert stored["ray"] == stored["local"]
    assert len({str(outcome) for outcome in stored["ray"]}) == len(listed)
    assert ("population" in stored["ray"][0][3]) == together
    assert ray.is_initialized()


def test_a_worker_that_is_killed_has_its_unit_retried(cluster, tmp_path):
    listed, victim, marker = specs(), specs()[1].key, tmp_path / "begun"
    os.mkfifo(tmp_path / "pipe")

    def fragile(unit, graphs):
        if unit.specs[0].key == victim and not marker.exists():
            marker.touch()
            with Path(tmp_path, "pipe").open("w") as pipe:
                pipe.write(str(os.getpid()))
            signal.pause()
        return run_unit(unit, graphs)

    def kill():
        os.kill(int(Path(tmp_path, "pipe").read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with RunStore(tmp_path / "runs.sqlite") as store:
        results = execute(listed, store, executor=RayExecutor(run=fragile), together=False)
        assert len(list(store.rows(history=True))) == len(listed)
    killer.join(timeout=0)
    assert not killer.is_alive()
    assert outcomes(results) == outcomes([run_unit(Unit((spec,)))[0] for spec in listed])


def test_workers_keep_graphs_and_take_the_threads_they_are_given(cluster):
    def look(unit, graphs):
        graphs.visits = getattr(graphs, "visits", 0) + 1
        return [os.getpid(), graphs.visits, torch.get_num_threads(), os.environ["BIGCN_DATA"]]

    units = make_units(specs(seeds=(1, 2, 3, 4)), together=False)
    seen = [result for _, result in RayExecutor(run=look).run(units)]
    most = {pid: max(visits for other, visits, *_ in seen if other == pid) for pid, *_ in seen}
    assert sum(most.values()) == len(units) > len(most)
    assert {threads for _, _, threads, _ in seen} == {1}
    assert {data for *_, data in seen} == {os.path.realpath(os.environ["BIGCN_DATA"])}
    assert {result[2] for _, result in RayExecutor(threads=2, run=look).run(units[:2])} == {2}


def test_nothing_is_begun_after_the_deadline(cluster):
    units = make_units(specs(seeds=(1, 2, 3, 4)), together=False)
    executor, ended = RayExecutor(minutes=1000, run=lambda unit, graphs: []), []
    for unit, _ in executor.run(units):
        ended.append(unit)
        executor.deadline = time.monotonic() - 1
    assert sorted(map(units.index, ended)) == [0, 1]  # the two that had begun
    assert list(RayExecutor(minutes=0).run(units)) == []


def test_who_stops_listening_ends_what_is_under_way(cluster, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def stuck(unit, graphs):
        if unit.specs[0].model == "mlp":
            with Path(tmp_path, "pipe").open("w") as mine:
                mine.write("x")
                mine.flush()
                signal.pause()
        return []

    results = RayExecutor(run=stuck).run(make_units(specs(seeds=(5,)), together=False))
    next(results)
    for close, expected in ((False, b"x"), (True, b"")):  # at the end of the file nobody is left to write
        if close:
            results.close()
        assert select.select([pipe], [], [], 30)[0]
        assert os.read(pipe, 1) == expected
    os.close(pipe)


def test_what_goes_wrong_in_a_worker_goes_wrong_here(cluster):
    def raises(unit, graphs):
        raise DatasetUnavailable("digits are out")

    with pytest.raises(DatasetUnavailable, match=r"^digits are out$"):
        list(RayExecutor(run=raises).run(make_units(specs(), together=False)))
    units = make_units(specs(device="cuda"), together=True)
    with pytest.raises(RayError, match=r"^no machine of the Ray cluster has what a unit takes: 1 CPU, 1 GPU$"):
        list(RayExecutor().run(units))
    with pytest.raises(RayError, match=r"takes: 3 CPU$"):
        list(RayExecutor(threads=3).run(make_units(specs(), together=False)))
    assert list(RayExecutor().run([])) == []


@pytest.mark.parametrize("address", ["nowhere", ":6379", "host:", "host:70000", "ray://host", "host:x1"])
def test_an_address_that_is_none(address):
    with pytest.raises(RayError, match="is not host:port, ray://host:port or auto"):
        ray_executor._check(address)


def test_a_port_where_somebody_else_listens(monkeypatch):
    monkeypatch.setattr(ray_executor, "RAY_PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        for form in (address, f"ray://{address}"):
            with pytest.raises(RayError, match=f"^no Ray cluster answers at {form}: waited for 0.5 seconds$"):
                ray_executor._check(form)


@pytest.mark.usefixtures("cluster")
def test_from_outside_the_cluster(client_port, tmp_path):
    """What is installed with the extra is enough for an address ray://host:port."""
    words = ["--models", "mlp,gcn", "--seeds", "1", "--max-epochs", "8", "--device", "cpu", "--json"]
    words += ["--executor", "ray", "--ray-address", f"ray://127.0.0.1:{client_port}"]
    command = [sys.executable, "-m", "bigcn", "compare", "digits", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with RunStore(tmp_path / "runs/store.sqlite") as store, RunStore(tmp_path / "here.sqlite") as here:
        far = outcomes(execute(specs(seeds=(5,)), store, executor=LocalExecutor()))
        assert len(list(store.rows(history=True))) == 2  # all was there already
        assert far == outcomes(execute(specs(seeds=(5,)), here, executor=LocalExecutor()))


def test_an_interrupted_comparison_goes_on_elsewhere(cluster, tmp_path):
    """The command starts a cluster of its own and gives it up; another one does the rest."""
    folder = tempfile.mkdtemp(prefix="bigcn-", dir="/tmp")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_TMPDIR": folder, "BIGCN_DATA": folder}
    words = ["--models", "mlp,gcn", "--seeds", "30", "--max-epochs", "8", "--device", "cpu", "--json"]
    command = subprocess.Popen(
        [sys.executable, "-m", "bigcn", "compare", "digits", *words, "--executor", "ray"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that puts the tests in the background has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert command.stderr is not None
    for line in command.stderr:
        if line.startswith("[3/60]"):
            command.send_signal(signal.SIGINT)
            break
    out, err = command.communicate()
    assert (command.returncode, out) == (130, "")
    *lines, last = err.splitlines()
    assert all(line.startswith("[") for line in lines)
    assert last.startswith("bigcn: interrupted; finished runs are stored")
    shutil.rmtree(folder)
    whole = Comparison(
        dataset="digits", models=("mlp", "gcn"), seeds=tuple(range(5, 155, 5)), training={"max_epochs": 8}
    )
    known = []
    with RunStore(tmp_path / "runs/store.sqlite") as store, RunStore(tmp_path / "here.sqlite") as here:
        result = run_comparison(whole, store, on_run=lambda *run: known.append(run[2]), executor=RayExecutor())
        assert 3 <= sum(known) < len(known) == 60
        assert len(list(store.rows(history=True))) == 60
        assert result.rows() == run_comparison(whole, here).rows()
    assert ray.get_runtime_context().gcs_address == cluster


def test_a_worker_without_the_library(cluster, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['bigcn'] = None\n")
    monkeypatch.setattr(ray_executor, "_environment", lambda: {"env_vars": {"PYTHONPATH": str(tmp_path)}})
    with pytest.raises(
        RayError, match=r"^a Ray worker cannot load gcn on digits, seed 5, it needs the bigcn"
    ) as caught:
        list(RayExecutor().run(make_units(specs(seeds=(5,)), together=False)[:1]))
    assert "\n" not in str(caught.value)


def test_a_unit_that_always_dies_is_given_up_and_the_others_are_kept(cluster, tmp_path):
    listed, begun = specs(seeds=(5,)), tmp_path / "begun"

    def deadly(unit, graphs):
        if unit.specs[0].model == "mlp":
            with begun.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return run_unit(unit, graphs)

    with RunStore(tmp_path / "runs.sqlite") as store:
        with pytest.raises(RayError) as caught:
            execute(listed, store, executor=RayExecutor(max_retries=1, run=deadly), together=False)
        assert [spec.model for spec, _ in store.rows()] == ["gcn"]
    assert begun.read_text() == "xx"
    assert str(caught.value) == (
        "mlp on digits, seed 5 was given up: its Ray worker died 2 times (WorkerCrashedError); finished runs are kept"
    )
