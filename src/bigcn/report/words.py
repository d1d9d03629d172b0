"""What things are called in a report, and how numbers are written."""

import re
from typing import Any

from bigcn.datasets import DATASETS, DatasetSpec
from bigcn.experiments.own import MAJORITY, PREFIX, is_own
from bigcn.nn.registry import title_of

#: What each metric is called.
METRICS: dict[str, str] = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "ece": "calibration error",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
}
#: What the amount of each kind of noise is, as the label of an axis.
AMOUNTS: dict[str, str] = {
    "clean": "no noise",
    "noise-level": "standard deviation of the noise",
    "noise-rate": "share of nodes with noise",
    "column-noise": "share of feature columns with noise",
    "structure-mistakes": "share of node pairs flipped",
    "feature-rate": "share of feature columns kept",
}
#: What is done to the graph, as the end of a question.
_TROUBLES: dict[str, str] = {
    "clean": "when the data are clean",
    "noise-level": "when every feature of every node carries noise",
    "noise-rate": "when the features of some nodes carry noise",
    "column-noise": "when some feature columns are full of noise",
    "structure-mistakes": "when links are missing and others are made up",
    "feature-rate": "when only some of its features are known",
}
# Neither XML nor HTML can hold these, escaped or not.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def printable(text: Any) -> str:
    r"""Returns a text with what no page can show replaced.

    Example:
        >>> printable("a\x00b")
        'a�b'
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))


def label(text: Any) -> str:
    r"""Returns a printable text on one line.

    Example:
        >>> label("two\nlines")
        'two lines'
    """
    return " ".join(printable(text).split())


def dataset_of(name: str) -> DatasetSpec | None:
    """Returns what the registry knows about a graph, or :obj:`None` for a graph of someone's own."""
    return DATASETS.get(name.lower())


def dataset_title(name: str) -> str:
    """Returns the name of a graph for people."""
    spec = dataset_of(name)
    return label(name.removeprefix(PREFIX)) if spec is None else spec.title


def model_title(name: str) -> str:
    """Returns the name of a model for people; a name that the registry does not know stands for itself.

    Example:
        >>> model_title("gcn"), model_title("of my own")
        ('GCN', 'of my own')
    """
    return "Largest class" if name == MAJORITY else label(title_of(name))


def metric_title(metric: str) -> str:
    """Returns the name of a metric for people."""
    return METRICS.get(metric, label(metric).replace("_", " "))


def question(comparison: Any) -> str:
    """Asks in words what a comparison answers.

    Args:
        comparison (Comparison): The comparison.
    """
    graph = dataset_title(comparison.dataset)
    if is_own(comparison.dataset):
        what, done = ("nodes", "labelled") if comparison.task == "node" else ("links", "found")
        whose = f"these {what}" if graph == "nodes" else f"the {what} of {graph}"  # as a table is called
        return f"How well can {whose} be {done}?"
    does = f"labels the nodes of {graph}" if comparison.task == "node" else f"finds the missing links of {graph}"
    return f"Which model {does} best {_TROUBLES.get(comparison.case, f'under {label(comparison.case)}')}?"


def amount(case: str) -> str:
    """Returns what the value of a case measures."""
    return AMOUNTS.get(case, label(case))


def number(value: float | None) -> str:
    """Writes an amount of noise as briefly as it can be.

    Example:
        >>> number(0.50), number(1e-05), number(None)
        ('0.5', '0.00001', '')
    """
    if value is None:
        return ""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text if float(text or 0) == value else f"{value:g}"


def percent(share: float, digits: int = 1) -> str:
    """Writes a fraction in percent, without the sign.

    Example:
        >>> percent(0.876)
        '87.6'
    """
    return f"{100 * share:.{digits}f}"


def score(row: dict[str, Any]) -> str:
    """Writes mean and standard deviation in percent; a single run has no spread that one could know.

    Args:
        row (dict): A row of a comparison.
    """
    mean = percent(row["mean"])
    return mean if row["seeds"] < 2 else f"{mean} ± {percent(row['std'])}"


def duration(seconds: float) -> str:
    """Writes a time in the unit that suits it.

    Example:
        >>> duration(0.25), duration(75), duration(7300)
        ('0.25 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds < 0.995 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def plural(count: int, noun: str) -> str:
    """Writes a number with its noun.

    Example:
        >>> plural(1, "seed"), plural(1200, "run")
        ('1 seed', '1,200 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
