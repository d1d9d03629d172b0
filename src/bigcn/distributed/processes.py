"""The processes that share a graph: who they are, what they send each other, and what happens when one is lost."""

import ctypes
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any, Literal, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

#: What a row travels for: hops on the node graph, pairs of linked nodes, sums over nodes, gradients.
Kind = Literal["hops", "pairs", "sums", "gradients"]
#: How long a process waits for another that is alive but silent; one that has died is noticed at once.
TIMEOUT = 300.0
#: The option of glibc that says from which size on memory is mapped on its own.
_MMAP_THRESHOLD = -3
T = TypeVar("T")


class LostProcess(RuntimeError):
    """Another process is gone, so that this one cannot go on; the message is one sentence."""


class Processes:
    """The processes of a run, and the bytes that this one has sent to the others.

    Without :obj:`torchrun` there is one process, and nothing is sent. Use :func:`joined` to make and leave it.

    Args:
        device (torch.device, optional): Where the tensors are. (default: the CPU)
        timeout (float, optional): How many seconds to wait for a silent process. (default: :obj:`300`)
    """

    def __init__(self, device: torch.device | str = "cpu", timeout: float = TIMEOUT) -> None:
        self.device = torch.device(device)
        self.rank = int(os.environ.get("RANK", "0"))
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        #: The bytes sent to other processes, by what for.
        self.traffic: Counter[Kind] = Counter()
        #: Where the run stands, for what is said if it ends early.
        self.doing = "starting"
        #: Whether messages are sent at all: a lone process of torchrun does send them, to itself.
        self.grouped = self.size > 1 or "RANK" in os.environ
        if not self.grouped:
            return
        if self.device.type == "cuda":
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            # All of them ask for all, so that the first, which speaks for them, knows it too.
            local = int(os.environ.get("LOCAL_WORLD_SIZE", self.device.index + 1))
            if max(local, self.device.index + 1) > torch.cuda.device_count():
                raise ValueError(
                    f"'--device cuda' needs a GPU for each process, and this machine has {torch.cuda.device_count()}"
                )
            torch.cuda.set_device(self.device)
        # Objects and errors go over gloo even beside NCCL, which knows tensors on GPUs only.
        backend = "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo"
        wait = timedelta(seconds=timeout)
        with self.watched():
            dist.init_process_group(backend, timeout=wait, **_meeting_point(self.rank, self.size, wait))

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Turns the errors of a broken connection into one sentence."""
        try:
            yield
        except (RuntimeError, TimeoutError) as error:
            if isinstance(error, LostProcess) or not _is_connection(error):
                raise
            raise LostProcess(
                f"process {self.rank + 1} of {self.size} lost another one while {self.doing}, and stops"
            ) from error

    def exchange(self, rows: Tensor, send: list[int], receive: list[int], kind: Kind) -> Callable[[], Tensor]:
        """Begins to send rows, so many to each process in turn, and returns what waits for those received.

        Args:
            rows (torch.Tensor): The rows to send, grouped by process.
            send, receive (list[int]): How many rows go to, and come from, each process.
            kind (str): What for.
        """
        if not self.grouped:
            return lambda: rows
        row_bytes = rows[:1].numel() * rows.element_size() if rows.size(0) else 0
        self.traffic[kind] += (rows.size(0) - send[self.rank]) * row_bytes
        received = rows.new_empty(sum(receive), *rows.shape[1:])
        with self.watched():
            work = dist.all_to_all_single(received, rows.contiguous(), receive, send, async_op=True)

        def wait() -> Tensor:
            with self.watched():
                work.wait()
            return received

        return wait

    def total(self, partial: Tensor, kind: Kind = "sums") -> Tensor:
        """Returns the sum over all processes, the same bits on each."""
        if not self.grouped:
            return partial
        total = partial.detach().clone(memory_format=torch.contiguous_format)
        # A ring sends all but its share of the array twice.
        self.traffic[kind] += 2 * (self.size - 1) * total.numel() * total.element_size() // self.size
        with self.watched():
            dist.all_reduce(total)
        return total

    def count(self, number: int) -> int:
        """Returns the sum of a whole number over all processes."""
        return int(self.total(torch.tensor(number, device=self.device)))

    def gather(self, value: T) -> list[T]:
        """Returns the values of all processes to each of them; meant for small ones."""
        if not self.grouped:
            return [value]
        values: list[Any] = [None] * self.size
        with self.watched():
            dist.all_gather_object(values, value)
        return values

    def gather_rows(self, rows: Tensor) -> list[Tensor] | None:
        """Returns the rows of all processes to the first one, and :obj:`None` to the others."""
        if not self.grouped:
            return [rows]
        counts = self.gather(rows.size(0))
        send = [rows.size(0)] + [0] * (self.size - 1)
        receive = counts if self.leads else [0] * self.size
        everything = self.exchange(rows, send, receive, "sums")()
        return list(everything.split(counts)) if self.leads else None

    def from_first(self, value: T | None) -> T:
        """Returns the value of the first process to all; the others need not have one."""
        if not self.grouped:
            return cast(T, value)
        values = [value]
        with self.watched():
            dist.broadcast_object_list(values, src=0)
        return cast(T, values[0])

    def together(self, task: Callable[[], T]) -> T:
        """Runs a task that can fail on some process alone; if so, all processes fail with the same sentence."""
        result: T | None = None
        problem: tuple[str, str] | None = None
        try:
            result = task()
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            problem = ("input", f"{place}{error.strerror or error}")
        except (ValueError, MemoryError) as error:
            problem = ("input", str(error) or "not enough memory")
        found = [other for other in self.gather(problem) if other is not None]
        if found:
            raise ValueError(found[0][1])
        return cast(T, result)

    def leave(self) -> None:
        """Leaves the group in good order."""
        if self.grouped and dist.is_initialized():
            dist.destroy_process_group()


@contextmanager
def joined(device: torch.device | str = "cpu", timeout: float = TIMEOUT) -> Iterator[Processes]:
    """Joins the other processes of :obj:`torchrun` for a while.

    A process that is told to end while the others are lost says so like one that has noticed it itself.

    Args:
        device, timeout: See :class:`Processes`.
    """
    _return_freed_memory()
    processes = Processes(device, timeout)

    def stop(number: int, frame: FrameType | None) -> None:
        raise LostProcess(
            f"process {processes.rank + 1} of {processes.size} was told to stop while {processes.doing}"
        ) from None

    before = signal.getsignal(signal.SIGTERM)
    # A process that waits for a GPU could not answer, and is better ended by the signal itself.
    on_cpu = processes.device.type == "cpu"
    handles = processes.size > 1 and on_cpu and threading.current_thread() is threading.main_thread()
    if handles:
        signal.signal(signal.SIGTERM, stop)
    try:
        yield processes
    finally:
        if handles:
            signal.signal(signal.SIGTERM, before)
        if not isinstance(sys.exc_info()[1], LostProcess):
            processes.leave()


def run_process(work: Callable[[Processes], T], device: torch.device | str = "cpu", timeout: float = TIMEOUT) -> T:
    """Runs one process of a program, which ends with one sentence if it cannot go on.

    Bad input ends with exit code 2, and the first process alone says why. A lost process ends the others with exit
    code 1, upon which :obj:`torchrun --max-restarts` starts all of them again.

    Args:
        work (Callable): What to do among the processes.
        device, timeout: See :class:`Processes`.
    """
    rank = int(os.environ.get("RANK", "0"))
    try:
        with joined(device, timeout) as processes:
            return work(processes)
    except LostProcess as error:
        end_at_once(str(error), 1)
    except (ValueError, OSError, FloatingPointError) as error:
        if rank == 0:
            print(f"bigcn: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
    raise AssertionError


def end_at_once(message: str, code: int) -> None:
    """Ends this process with one sentence, without waiting for connections that nobody answers any more."""
    # One write, so that the sentences of several processes do not mix.
    sys.stdout.flush()
    sys.stderr.write(f"bigcn: {message}\n")
    sys.stderr.flush()
    os._exit(code)


def _return_freed_memory() -> None:
    """Has blocks of more than a megabyte given back to the system when they are freed, where the C library is glibc.

    By default it comes to keep blocks of up to 32 MB, the size of a narrow block of a few hundred thousand nodes: a
    process would hold several times what it uses.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


def _meeting_point(rank: int, size: int, timeout: timedelta) -> dict[str, Any]:
    """Says where processes find each other, if it is not where PyTorch would look."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
        return {}
    # torchrun keeps one store through all restarts, in which new processes would find the addresses of dead ones.
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, is_master=False, timeout=timeout)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return {"store": PrefixStore(f"bigcn/{attempt}", store), "rank": rank, "world_size": size}


def _is_connection(error: BaseException) -> bool:
    text = str(error).lower()
    if isinstance(error, dist.DistError) or "gloo" in text or "nccl" in text:
        return True
    return any(word in text for word in ("connection", "timed out", "broken pipe", "recvvalue", "socket"))
