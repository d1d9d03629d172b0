"""What a run is, what came out of it, and the table that many runs make."""

import dataclasses
import functools
import hashlib
import json
import math
import numbers
import platform
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

# Part of every key: raise it when a key comes to mean something else, and old results are no longer answered.
KEY_FORMAT = 1
TASKS = ("node", "link")
DEVICES = ("cpu", "cuda")
STATUSES = ("ok", "failed")
MAX_SEED = 2**63 - 1  # A larger whole number has no place in SQLite.
SUMMARY_COLUMNS = ("model", "dataset", "task", "case", "value", "protocol", "metric", "mean", "std", "seeds")


def clean_text(text: str) -> str:
    """Returns :obj:`text` with lone surrogates escaped: file names can hold them, UTF-8 cannot."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: Any, where: str) -> float:
    number = float(value) + 0.0  # Turns -0.0 into 0.0.
    if not math.isfinite(number):
        raise ValueError(f"{where} is {number}; only finite numbers can be stored.")
    return number


def _plain(value: Any, where: str, lenient: bool = False) -> Any:
    """Copies :obj:`value` into exactly what JSON gives back, so that a record equals itself after a round trip."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return None if lenient and not math.isfinite(value) else _number(value, where)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", lenient) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise ValueError(f"{where} has the key {name!r}; only text can be a key.")
        return {clean_text(name): _plain(item, f"{where}[{name!r}]", lenient) for name, item in value.items()}
    raise ValueError(
        f"{where} is of type {type(value).__name__}; "
        "only numbers, text, True, False, None, lists and mappings of these can be stored."
    )


def _integral(value: Any) -> Any:
    # A person who writes 1 and one who writes 1.0 mean the same run; True is not a number here.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_integral(item) for item in value]
    if isinstance(value, dict):
        return {name: _integral(item) for name, item in value.items()}
    return value


def _digest(value: Any) -> str:
    text = json.dumps(_integral(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _one_of(value: Any, allowed: tuple[str, ...], where: str) -> None:
    if value not in allowed:
        raise ValueError(f"{where} is {value!r}; it must be one of {', '.join(allowed)}.")


@dataclass(frozen=True, eq=False)
class RunSpec:
    r"""Everything that makes a run what it is. Two specs are equal when their keys are.

    Args:
        task (str): :obj:`"node"` or :obj:`"link"`.
        dataset (str): The name of the dataset.
        dataset_fingerprint (str): A checksum of its content.
        protocol (str): How the data were split and scored.
        case (str): The kind of corruption, such as :obj:`"clean"` or :obj:`"noise-level"`.
        value (float, optional): How much of it.
        model (str): The name of the model, such as :obj:`"bigcn:published"`.
        settings (dict): All hyper-parameters of model and training: numbers, text, booleans, :obj:`None`, and lists
            and mappings of these. It is copied; tuples become lists.
        seed (int): The seed of splits, noise and weights.
        device (str): :obj:`"cpu"` or :obj:`"cuda"`.

    """

    task: str
    dataset: str
    dataset_fingerprint: str
    protocol: str
    case: str
    value: float | None
    model: str
    settings: Mapping[str, Any]
    seed: int
    device: str

    def __post_init__(self) -> None:
        _one_of(self.task, TASKS, "The task of a run")
        _one_of(self.device, DEVICES, "The device of a run")
        if isinstance(self.seed, bool) or not isinstance(self.seed, numbers.Integral) or not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"The seed of a run is {self.seed!r}; it must be a whole number from 0 to 2**63 - 1.")
        if not isinstance(self.settings, Mapping):
            raise ValueError(f"The settings of a run are of type {type(self.settings).__name__}, not a mapping.")
        plain: dict[str, Any] = {"seed": int(self.seed), "settings": _plain(self.settings, "settings")}
        for name in ("dataset", "dataset_fingerprint", "protocol", "case", "model"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"The {name} of a run is {getattr(self, name)!r}; it must be text.")
            plain[name] = clean_text(getattr(self, name))
        if self.value is not None:
            plain["value"] = _number(self.value, "The value of a run")
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def key(self) -> str:
        """The SHA-256 of all fields, the same on every machine. The order of settings does not matter, and ``1`` is
        ``1.0`` (but not ``True``). Versions and time are no part of it.
        """
        return _digest({"format": KEY_FORMAT, **vars(self)})

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a JSON-able dictionary."""
        return dataclasses.asdict(self)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, RunSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


def utc_now() -> str:
    """Returns the time in UTC as ISO 8601, the form :class:`RunResult` keeps."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@functools.cache
def _versions() -> dict[str, str]:
    import torch

    import bigcn

    versions = {"bigcn": bigcn.__version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in ("torch", "torch_geometric", "numpy")}
    return versions | ({"cuda": torch.version.cuda} if torch.version.cuda else {})


def current_versions() -> dict[str, str]:
    """Returns the versions of everything that can change a result."""
    return dict(_versions())


@functools.cache
def _cpu_name() -> str:
    try:  # On Linux, `platform.processor` knows at most the architecture.
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe_host() -> dict[str, str]:
    """Returns platform and processor, and the GPU once this process has used it; nothing that names a person."""
    import torch

    host = {"platform": f"{platform.system()} {platform.machine()}", "cpu": _cpu_name()}
    # Asking for the name would start CUDA, which a run on the CPU should not pay for (and a later fork not survive).
    return host | ({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_initialized() else {})


@dataclass(frozen=True, kw_only=True)
class RunResult:
    r"""What came out of a run, and with what it was made.

    Args:
        metrics (dict): Finite scores by name. A run that diverged has none to offer: it has failed.
        status (str): :obj:`"ok"` or :obj:`"failed"`. (default: :obj:`"ok"`)
        error (str, optional): Why a run failed; required exactly then.
        seconds (float): How long it took.
        epochs (int, optional): How many epochs it trained.
        started (str): When it began: ISO 8601 with an offset, kept in UTC. See :func:`utc_now`.
        versions (dict, optional): See :func:`current_versions`, the default.
        host (dict, optional): See :func:`describe_host`, the default.
        details (dict, optional): Anything JSON can hold, such as curves. NaN and infinity become :obj:`None`.

    """

    metrics: dict[str, float]
    seconds: float
    started: str
    status: str = "ok"
    error: str | None = None
    epochs: int | None = None
    versions: dict[str, str] = field(default_factory=current_versions)
    host: dict[str, str] = field(default_factory=describe_host)
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of(self.status, STATUSES, "The status of a run")
        if (self.status == "failed") != bool(self.error):
            raise ValueError("A failed run needs an error that says why, and no other run may have one.")
        began = datetime.fromisoformat(self.started)
        if began.tzinfo is None:
            raise ValueError(f"The start {self.started!r} of a run has no offset; write it in UTC.")
        plain = {
            "metrics": {clean_text(name): _number(score, f"metric {name!r}") for name, score in self.metrics.items()},
            "seconds": _number(self.seconds, "seconds"),
            "started": began.astimezone(UTC).isoformat(timespec="microseconds"),
            "error": clean_text(self.error) if self.error else None,
            "epochs": None if self.epochs is None else int(self.epochs),
            "versions": _plain(self.versions, "versions"),
            "host": _plain(self.host, "host"),
            "details": _plain(self.details, "details", lenient=True),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)


SPEC_FIELDS = tuple(item.name for item in dataclasses.fields(RunSpec))
RESULT_FIELDS = tuple(item.name for item in dataclasses.fields(RunResult))
JSON_FIELDS = ("settings", "metrics", "versions", "host", "details")


def encode(spec: RunSpec, result: RunResult) -> dict[str, Any]:
    """Returns a run as one flat row of numbers and text."""
    row = {**spec.to_dict(), **vars(result)}
    return row | {name: json.dumps(row[name], sort_keys=True, allow_nan=False) for name in JSON_FIELDS}


def decode(row: Mapping[str, Any]) -> tuple[RunSpec, RunResult]:
    """Undoes :func:`encode`; columns that are no part of a run are left aside."""
    fields = {name: json.loads(row[name]) if name in JSON_FIELDS else row[name] for name in SPEC_FIELDS + RESULT_FIELDS}
    return RunSpec(**{n: fields[n] for n in SPEC_FIELDS}), RunResult(**{n: fields[n] for n in RESULT_FIELDS})


def _variant(spec: RunSpec) -> tuple[str, str, str]:
    return _digest(spec.settings), spec.device, _digest(spec.dataset_fingerprint)


def _label(model: str, variant: tuple[str, str, str], siblings: set[tuple[str, str, str]]) -> str:
    shown = (f"settings {variant[0][:8]}", variant[1], f"data {variant[2][:8]}")
    differ = [len(set(column)) > 1 for column in zip(*siblings, strict=True)]
    return f"{model} [{', '.join(part for part, differs in zip(shown, differ, strict=True) if differs)}]"


def summarise(pairs: Iterable[tuple[RunSpec, RunResult]], metric: str | None = None) -> list[dict[str, Any]]:
    r"""Averages runs over their seeds, in the order in which the groups first appear.

    Runs that differ in settings, device or content of the dataset are never averaged. Where such runs would stand
    under the same name, all rows of that model in that case carry what tells them apart, as in
    :obj:`"gcn [settings 1f0c2a9b]"` or :obj:`"gcn [cuda]"`.

    Args:
        pairs (iterable): Specs and their results. Failed runs are left out; a spec given twice counts once, with its
            last result.
        metric (str, optional): If given, only this metric is summarised.

    Returns:
        One dictionary per group and metric with the keys :obj:`SUMMARY_COLUMNS`. :obj:`std` is the sample standard
        deviation, :obj:`0.0` for a single seed; :obj:`seeds` is the number of seeds.

    """
    runs = {spec: result for spec, result in pairs if result.status == "ok"}
    scores: dict[tuple[Any, ...], list[float]] = {}
    variants: dict[tuple[Any, ...], dict[float | None, set[tuple[str, str, str]]]] = {}
    for spec, result in runs.items():
        series, variant = (spec.model, spec.dataset, spec.task, spec.case, spec.protocol), _variant(spec)
        variants.setdefault(series, {}).setdefault(spec.value, set()).add(variant)
        for name, score in result.metrics.items():
            if metric in (None, name):
                scores.setdefault((series, spec.value, variant, name), []).append(score)
    rows = []
    for (series, value, variant, name), values in scores.items():
        model, dataset, task, case, protocol = series
        # Different settings for different values are one curve of one model; only a clash needs telling apart.
        if any(len(found) > 1 for found in variants[series].values()):
            model = _label(model, variant, set().union(*variants[series].values()))
        std = statistics.stdev(values) if len(values) > 1 else 0.0
        row = (model, dataset, task, case, value, protocol, name, statistics.fmean(values), std, len(values))
        rows.append(dict(zip(SUMMARY_COLUMNS, row, strict=True)))
    return rows
