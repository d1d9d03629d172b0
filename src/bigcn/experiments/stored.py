"""Comparisons from what a store holds."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bigcn.experiments.comparison import Comparison, ComparisonResult, Pair
from bigcn.experiments.own import is_own, own_results


def stored_comparisons(pairs: Sequence[Pair]) -> list[ComparisonResult]:
    """Sorts runs from a store into comparisons that could have made them.

    The same graph (down to its checksum), task, case, protocol and device belong together. Where a model was run with
    other settings too, say for more epochs, its first settings go to a first comparison, the second to a second, and
    nothing is mixed. Runs on graphs of one's own are sorted by :func:`~bigcn.experiments.own.own_results`.

    Args:
        pairs (Sequence): Runs with their results, as :meth:`RunStore.rows` gives them.
    """
    variants: dict[tuple[str, ...], list[str]] = {}
    groups: dict[tuple[Any, ...], list[Pair]] = {}
    for spec, result in pairs:
        if is_own(spec.dataset):
            continue
        shared = (spec.dataset, spec.dataset_fingerprint, spec.task, spec.case, spec.protocol, spec.device)
        known = variants.setdefault((*shared, spec.model), [])
        variant = json.dumps(spec.settings, sort_keys=True)
        if variant not in known:
            known.append(variant)
        groups.setdefault((*shared, known.index(variant)), []).append((spec, result))
    own = [(spec, result) for spec, result in pairs if is_own(spec.dataset)]
    return [*map(_as_comparison, groups.values()), *own_results(own)]


def _as_comparison(group: list[Pair]) -> ComparisonResult:
    first = group[0][0]
    comparison = Comparison(
        dataset=first.dataset,
        models=tuple(dict.fromkeys(spec.model for spec, _ in group)),
        task="link" if first.task == "link" else "node",
        case=first.case,
        values=tuple(sorted({spec.value for spec, _ in group if spec.value is not None})),
        seeds=tuple(sorted({spec.seed for spec, _ in group})),
        protocol=first.protocol,
        device=first.device,
        negatives=first.settings.get("negatives", "fresh"),
    )
    # What all runs have in common that the models alone would not have asked for.
    usual = {spec.model: spec.settings["training"] for spec in comparison.specs()}
    changes = [
        {key: value for key, value in spec.settings["training"].items() if value != usual[spec.model][key]}
        for spec, _ in group
    ]
    common = {key: value for key, value in changes[0].items() if all(change.get(key) == value for change in changes)}
    ordered = sorted(group, key=lambda pair: (pair[0].value is not None, pair[0].value or 0.0, pair[0].seed))
    return ComparisonResult(replace(comparison, training=common), tuple(ordered))
