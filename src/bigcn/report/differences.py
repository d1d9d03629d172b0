"""What tells comparisons apart that would have the same title."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bigcn.experiments.comparison import Comparison, ComparisonResult
from bigcn.experiments.own import OwnResult, is_own
from bigcn.report.words import label, number

#: What is said of an option of training; others are named as they are.
_TRAINING = {"max_epochs": "at most {} epochs"}
#: Options of training that decide nothing of what is measured.
_SILENT = ("curves", "restore_best")
#: What is said where the settings are the same, one after the other until nothing is left to tell apart.
_ELSE: tuple[Callable[[ComparisonResult], str], ...] = (
    lambda result: _seeds(result),
    lambda result: f"form “{label(getattr(result, 'about', {}).get('chosen', ''))}”",
    lambda result: f"data {result.pairs[0][0].dataset_fingerprint[:8]}",
    lambda result: f"run {result.pairs[0][1].started[:19].replace('T', ' ')}",
)


@dataclass(frozen=True, kw_only=True)
class _NotedComparison(Comparison):
    """A comparison with a word in its title.

    Args:
        note (str): The word.
    """

    note: str

    @property
    def title(self) -> str:
        return f"{super().title}, {self.note}"


def tell_apart(results: Sequence[ComparisonResult]) -> list[ComparisonResult]:
    """Names in the title of each comparison what tells it from others of the same title, and nothing else.

    Args:
        results (Sequence): Comparisons, each with one run at least.
    """
    titles = [result.comparison.title for result in results]
    notes = [""] * len(results)
    for title in dict.fromkeys(titles):
        places = [place for place, other in enumerate(titles) if other == title]
        for place, note in zip(places, _notes([results[place] for place in places]), strict=True):
            notes[place] = note
    return [_noted(result, note) if note else result for result, note in zip(results, notes, strict=True)]


def _notes(results: Sequence[ComparisonResult]) -> list[str]:
    """Returns a note for each of some comparisons of the same title; a single one needs none."""
    models = _shared_models(results)
    traits = [_traits(result, models) for result in results]
    notes: list[tuple[str, ...]] = [()] * len(results)
    for name in traits[0]:
        # What only some of them have, such as a weight decay that was not chosen, is no difference between them.
        if all(name in found for found in traits) and len({found[name] for found in traits}) > 1:
            notes = [(*note, found[name]) for note, found in zip(notes, traits, strict=True)]
    for words_of in _ELSE:
        for same in dict.fromkeys(notes):
            places = [place for place, note in enumerate(notes) if note == same]
            said = [words_of(results[place]) for place in places]
            if len(set(said)) > 1:
                for place, words in zip(places, said, strict=True):
                    notes[place] = (*same, words)
    return [", ".join(filter(None, note)) for note in notes]


def _shared_models(results: Sequence[ComparisonResult]) -> set[str]:
    """Returns the models that all have, whose settings can be set side by side."""
    models = [{spec.model for spec, _ in result.pairs} for result in results]
    return set.intersection(*models) or set.union(*models)


def _traits(result: ComparisonResult, models: set[str]) -> dict[str, str]:
    """Returns in words how some models of a comparison were trained, by the name of what was set."""
    found: dict[str, set[Any]] = {}
    for settings in (spec.settings for spec, _ in result.pairs if spec.model in models):
        options = {name: value for name, value in settings.get("training", {}).items() if name not in _SILENT}
        options |= {name: settings[name] for name in ("search", "negatives") if name in settings}
        if options.get("search"):  # which chooses the weight decay
            options.pop("weight_decay", None)
        for name, value in options.items():
            found.setdefault(name, set()).add(value)
    said = {name: _words(name, values) for name, values in sorted(found.items())}
    if is_own(result.comparison.dataset):  # the seed decides its split
        said["seeds"] = _seeds(result)
    return {**said, "protocol": f"split “{result.comparison.protocol}”", "device": f"on {result.comparison.device}"}


def _words(option: str, values: set[Any]) -> str:
    if option == "search":
        return "with a search" if any(values) else "without a search"
    if option == "deterministic":
        return "deterministic algorithms" if any(values) else ""
    if option == "negatives":
        return f"{_joined(values, ' or ')} negatives"
    return _TRAINING.get(option, option.replace("_", " ") + " {}").format(_joined(values, " or "))


def _seeds(result: ComparisonResult) -> str:
    seeds = result.comparison.seeds
    return f"seed{'s' if len(seeds) > 1 else ''} {_joined(seeds)}"


def _joined(values: Iterable[Any], between: str = ", ") -> str:
    ordered = sorted(values, key=lambda value: (value is None, value))
    return between.join(number(value) if isinstance(value, float) else str(value) for value in ordered)


def _noted(result: ComparisonResult, note: str) -> ComparisonResult:
    comparison: Any = result.comparison
    if is_own(comparison.dataset):
        return OwnResult(replace(comparison, note=note), result.pairs)
    return replace(result, comparison=_NotedComparison(**vars(comparison), note=note))
