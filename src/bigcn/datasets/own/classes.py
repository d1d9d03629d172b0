"""Whether classes can be learned and divided, by the number of labelled nodes of each."""

from collections.abc import Sequence

from bigcn.datasets.own.graph import InputError


def check_classes(counts: Sequence[int], classes: Sequence[str], name: str) -> None:
    """Refuses labels that no classifier can learn from.

    Args:
        counts (Sequence[int]): The labelled nodes of each class.
        classes (Sequence[str]): The names of the classes, or nothing where they have none.
        name (str): What to call the graph.
    """
    present = [kind for kind, count in enumerate(counts) if count]
    if not present:
        raise InputError(f"no node of {name} has a label, so there is nothing to learn from")
    if len(present) < 2:
        only = classes[present[0]] if classes else present[0]
        raise InputError(f"all labels of {name} are {only!r}, and a classifier needs two classes at least")


def check_divisible(counts: Sequence[int], classes: Sequence[str]) -> None:
    """Refuses labels that cannot be divided into nodes that train, validate and test.

    Args:
        counts (Sequence[int]): The labelled nodes of each class.
        classes (Sequence[str]): The names of the classes.
    """
    for kind, count in enumerate(counts):
        if count == 1:
            raise InputError(
                f"class {classes[kind]!r} has one labelled node, and it takes one to train and another to judge: "
                "label more of them, or leave that label empty"
            )
    if max(counts, default=0) < 3:  # a class of two has none to validate
        raise InputError(f"{sum(counts)} labels are too few to train, validate and test on")
