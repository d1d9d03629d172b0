"""The first look: what was understood of the files, and what a practitioner would frown at."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bigcn.datasets.own.graph import Column, GraphSummary

if TYPE_CHECKING:
    from bigcn.datasets.own.columns import Values
    from bigcn.datasets.own.edges import Edges

#: Classes with fewer labels are warned about.
FEW_LABELS = 5
#: The share of isolated nodes, of missing values in all, and of missing values in a column that is warned about.
MANY_ISOLATED, MUCH_MISSING, MOSTLY_MISSING = 0.1, 0.2, 0.5
#: Homophily beyond chance, as a share of what is possible, below which the graph may not help.
LOW_HOMOPHILY = 0.1
#: From so many edges between labelled nodes on, homophily is worth a word.
MIN_EDGES = 20
#: What gives the label away must be known for this share of the labelled nodes.
KNOWN_LEAK = 0.5
#: From so many rows on, a column that counts them is called an id.
MIN_ROWS = 10


def summarize(
    edges: "Edges",
    num_nodes: int,
    columns: Sequence[Column],
    cells: "Sequence[Values]",
    y: np.ndarray | None,
    classes: Sequence[str],
    said: Sequence[str] = (),
) -> GraphSummary:
    """Returns what there is to say about a graph.

    Args:
        edges (Edges): The edges.
        num_nodes (int): The number of nodes.
        columns (Sequence[Column]): The feature columns.
        cells (Sequence[Values]): Their cells.
        y (numpy.ndarray, optional): The numbers of the classes, -1 for none.
        classes (Sequence[str]): The names of the classes.
        said (Sequence[str], optional): Warnings from reading. (default: :obj:`()`)
    """
    from bigcn.datasets.own.edges import count_components

    isolated, components = count_components(edges, num_nodes)
    kinds = [column.kind for column in columns]
    labels: dict[str, int] = {}
    homophily = chance = None
    joined = 0
    if y is not None:
        counts = np.bincount(y[y >= 0], minlength=len(classes))
        labels = {name: int(count) for name, count in zip(classes, counts, strict=True)}
        homophily, chance, joined = label_agreement([y[edges.once.numpy()]], len(classes))
    missing = sum(int(values.missing.sum()) for values in cells) / max(1, num_nodes * len(columns))
    warnings = [
        *said,
        *about_edges(edges.index.size(1) // 2, isolated, num_nodes),
        *about_homophily(homophily, chance, joined),
        *about_columns(zip(columns, cells, strict=True), y, len(classes)),
        *([] if y is None else about_labels(labels)),
    ]
    return GraphSummary(
        nodes=num_nodes,
        edges=edges.index.size(1) // 2,
        duplicates=edges.duplicates,
        self_loops=edges.self_loops,
        unknown=edges.unknown,
        isolated=isolated,
        components=components,
        features={kind: kinds.count(kind) for kind in ("number", "boolean", "category") if kind in kinds},
        missing=missing,
        labels=labels,
        unlabelled=num_nodes if y is None else int((y < 0).sum()),
        homophily=homophily,
        weighted=edges.weight is not None,
        warnings=tuple(warnings),
    )


def label_agreement(
    ends: Iterable[tuple[np.ndarray, np.ndarray]], num_classes: int
) -> tuple[float | None, float | None, int]:
    """Returns the share of labelled edges that join the same class, what chance would give, and their number.

    Args:
        ends (Iterable): The classes at both ends of each edge, -1 for none, some edges at a time.
        num_classes (int): The number of classes.
    """
    joined = same = 0
    counts = np.zeros(num_classes, dtype=np.int64)
    for low, high in ends:
        both = (low >= 0) & (high >= 0)
        low, high = low[both], high[both]
        joined, same = joined + len(low), same + int((low == high).sum())
        counts += np.bincount(np.concatenate([low, high]), minlength=num_classes)
    if joined == 0:
        return None, None, 0
    return same / joined, float(((counts / (2 * joined)) ** 2).sum()), joined


def about_edges(count: int, isolated: int, num_nodes: int) -> Iterator[str]:
    """Gives the warnings about a graph that says little."""
    if count == 0:
        yield "There are no edges: the graph cannot help."
    elif isolated > MANY_ISOLATED * num_nodes:
        yield f"{isolated:,} of {num_nodes:,} nodes have no edge: the graph says nothing about them."


def about_homophily(homophily: float | None, chance: float | None, joined: int) -> Iterator[str]:
    """Gives the warning about a graph that joins other classes, see :func:`label_agreement`."""
    if homophily is None or chance is None or chance == 1 or joined < MIN_EDGES:
        return
    if (homophily - chance) / (1 - chance) < LOW_HOMOPHILY:
        yield (
            f"Linked nodes share a class in {homophily:.0%} of the cases, and would by chance in {chance:.0%}: "
            f"the graph may not help."
        )


def about_columns(columns: "Iterable[tuple[Column, Values]]", y: np.ndarray | None, num_classes: int) -> Iterator[str]:
    """Gives the warnings about feature columns, each of which comes with its cells, one after the other."""
    from bigcn.datasets.own.labels import USUAL_SPLIT

    holes = size = 0
    constant, ids, leaks, gaps, spoilt, padded = [], [], [], [], [], []
    for column, values in columns:
        holes, size = holes + int(values.missing.sum()), size + len(values.missing)
        known = values.known
        if known.size and len(values.numbers) > 1 and known.min() == known.max():
            constant.append(column.name)
        elif _like_ids(column, values):
            ids.append(column.name)
        elif y is not None and num_classes > 1 and _is_label(values, y, num_classes):
            leaks.append(column.name)
        if values.missing.mean() > MOSTLY_MISSING:
            gaps.append(column.name)
        if values.spoils is not None:
            spoilt.append((column.name, values.spoils))
        if values.padded is not None:
            padded.append((column.name, values.padded))
        if column.name == USUAL_SPLIT:
            yield from _about_split(column)
    yield from _said(constant, "is constant", "are constant")
    yield from _said(ids, "looks like an id, which says nothing about other nodes", "look like ids")
    yield from _said(leaks, "gives the label away: each of its values goes with one class", "give the label away")
    yield from _said(gaps, "is missing in more than half of the rows", "are missing in more than half of the rows")
    for name, text in spoilt[:5]:
        yield f"Column {name!r} is taken for categories: most of it looks like numbers, but {text!r} is none."
    for name, text in padded[:5]:
        yield f"Column {name!r} is read as numbers, and {text!r} looks like a code: write 'c{text}' if it is one."
    if holes > MUCH_MISSING * size:
        yield f"{holes / size:.0%} of all feature values are missing."


def _about_split(column: Column) -> Iterator[str]:
    """Gives the warning about a feature that looks a little like the split."""
    from bigcn.datasets.own.labels import NO_PART, WORDS

    words = [text for text in column.categories if text.lower() in WORDS]
    others = [text for text in column.categories if text.lower() not in (*WORDS, *NO_PART)]
    if words and others:
        yield (
            f"Column {column.name!r} is taken for a feature, not for the split: it holds {words[0]!r}, but "
            f"{others[0]!r} is none of train, val and test."
        )


def _said(names: list[str], one: str, several: str) -> Iterator[str]:
    if len(names) == 1:
        yield f"Column {names[0]!r} {one}."
    elif names:
        shown = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
        yield f"{len(names):,} columns {several}: {shown}."


def _like_ids(column: Column, values: "Values") -> bool:
    numbers = values.numbers
    if len(numbers) < MIN_ROWS or values.missing.any() or column.kind == "boolean":
        return False
    if column.kind == "category":
        return len(column.categories) == len(numbers)
    if not (numbers == np.floor(numbers)).all():
        return False
    if (np.diff(numbers) > 0).all():
        return True
    low = numbers.min()
    if numbers.max() - low + 1 != len(numbers):
        return False
    # As many whole numbers as there are rows in a range of that length: all different, or some are missing.
    return bool((np.bincount((numbers - low).astype(np.int64), minlength=len(numbers)) == 1).all())


def _is_label(values: "Values", y: np.ndarray, num_classes: int) -> bool:
    labelled = y >= 0
    known = labelled & ~values.missing
    if known.sum() < max(2, KNOWN_LEAK * labelled.sum()):
        return False
    found, first = np.unique(y[known], return_index=True)
    if len(found) < num_classes:
        return False
    # One value for each class, and no class shares its value with another.
    of_class = values.numbers[known][first]
    return len(np.unique(of_class)) == num_classes and bool((values.numbers[known] == of_class[y[known]]).all())


def about_labels(labels: dict[str, int]) -> Iterator[str]:
    """Gives the warnings about classes, with the number of their nodes."""
    present = {name: count for name, count in labels.items() if count}
    if not present:
        yield "No node has a label."
        return
    if len(present) == 1:
        yield f"All labelled nodes are of one class, {next(iter(present))!r}."
    few = {name: count for name, count in present.items() if count < FEW_LABELS}
    for name, count in list(few.items())[:5]:
        yield f"Class {name!r} has {count} label{'s' if count > 1 else ''} only."
    if len(few) > 5:
        yield f"{len(few) - 5} more classes have fewer than {FEW_LABELS} labels."


def _named(columns: Sequence[Column], plural: dict[str, str], most: int) -> Iterator[str]:
    """Names columns by what they are, categories with how many there are."""
    if all(column.name.startswith("feature ") for column in columns):
        return  # they have no names
    for kind, several in plural.items():
        of_kind = [column for column in columns if column.kind == kind]
        names = [f"{c.name} ({len(c.categories)})" if kind == "category" else c.name for c in of_kind[:most]]
        if names:
            more = f" and {len(of_kind) - most:,} more" if len(of_kind) > most else ""
            yield f"           {several}: {', '.join(names)}{more}"


def look(
    summary: GraphSummary,
    columns: Sequence[Column] = (),
    most_classes: int = 20,
    most_columns: int = 10,
    split: str | None = None,
) -> list[str]:
    """Returns the summary in lines for people.

    Args:
        summary (GraphSummary): What was understood.
        columns (Sequence[Column], optional): The feature columns, to name them. (default: :obj:`()`)
        most_classes (int, optional): How many classes to list, the largest first. (default: :obj:`20`)
        most_columns (int, optional): How many columns of each kind to name. (default: :obj:`10`)
        split (str, optional): What trains, validates and tests, in words. (default: :obj:`None`)
    """
    s = summary
    notes = [
        f"{s.duplicates:,} duplicates merged",
        f"{s.self_loops:,} self-loops removed",
        *([f"{s.unknown:,} skipped for an unknown id"] if s.unknown else []),
    ]
    plural = {"number": "numbers", "boolean": "booleans", "category": "categories"}
    kinds = ", ".join(f"{count:,} {kind if count == 1 else plural[kind]}" for kind, count in s.features.items())
    lines = [
        f"nodes      {s.nodes:,} ({s.isolated:,} isolated, {s.components:,} components)",
        f"edges      {s.edges:,}, {'weighted' if s.weighted else 'without weights'} ({', '.join(notes)})",
        f"columns    {kinds}; {s.missing:.1%} of the values missing",
        *_named(columns, plural, most_columns),
    ]
    if s.labels:
        labelled = s.nodes - s.unlabelled
        lines.append(f"labels     {len(s.labels):,} classes, {labelled:,} labelled, {s.unlabelled:,} to predict")
        ranked = sorted(s.labels.items(), key=lambda item: -item[1])
        lines += [f"           {count:>7,}  {name}" for name, count in ranked[:most_classes]]
        if len(ranked) > most_classes:
            lines.append(f"           {len(ranked) - most_classes:,} more classes")
    if s.homophily is not None:
        lines.append(f"homophily  {s.homophily:.2f} (of edges between labelled nodes, those within a class)")
    if split is not None:
        lines.append(f"split      {split}")
    return lines + [f"warning    {sentence}" for sentence in s.warnings]
