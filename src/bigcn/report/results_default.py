"""Which of our candidates is shipped as the default: the best on validation data over all graphs, clean and noisy."""

from typing import Literal

import numpy as np

from bigcn.experiments.contenders import Candidate, Contender
from bigcn.experiments.findings import OURS, Findings
from bigcn.experiments.paper import Series
from bigcn.report import results_tables as tables

_TASKS: dict[Literal["node", "link"], str] = {"node": "Nodes", "link": "Links"}
#: Where a choice was made: a series, and the amount of noise.
Place = tuple[Series, float | None]


def default_section(findings: Findings) -> str:
    """Returns the candidates by their mean validation score, or nothing if none has run everywhere.

    Args:
        findings (Findings): What was measured.
    """
    parts = []
    for task, title in _TASKS.items():
        scores, asked = validation_scores(findings, task)
        if not scores:
            continue
        first = next(iter(scores.values()))
        means = {candidate: float(np.mean(list(row.values()))) for candidate, row in scores.items()}
        rows = [
            [f"`{candidate}`", f"{100 * mean:.2f}"]
            for candidate, mean in sorted(means.items(), key=lambda pair: -pair[1])
        ]
        parts += [
            f"### {title}, {len(first)} of {asked} places\n",
            tables.table(["candidate", "validation"], rows),
        ]
    if not parts:
        return ""
    intro = (
        "`BiGCNClassifier`, its counterpart for links and `bigcn train` start from the candidate with the best mean\n"
        "validation score over all places where a choice is made: every graph, clean, at one level of noise, and for\n"
        "nodes with wrong edges; test data are not looked at. `BiGCN` itself has the filter of the one for nodes, and\n"
        "the model `bigcn` of a comparison that of its task, with the width, dropout and weight decay that all models\n"
        "of a comparison share. Of candidates within 0.1 points of the best, which three seeds cannot tell apart, one\n"
        "that is shipped already stays, as it does until all have run everywhere. Places where a candidate has not\n"
        "run are left out.\n\n"
        "A local filter (`top=`) is not shipped as the default, even where it is the best: to make one takes a solve\n"
        "for every node, and explainers, samplers of neighbourhoods and graphs spread over processes have no use for\n"
        "it. The search of `bigcn train` tries it on small graphs; what else starts from a default starts from the\n"
        "best of the others.\n"
    )
    return "\n".join(["## The shipped default\n", intro, *parts])


def validation_scores(findings: Findings, task: Literal["node", "link"]) -> tuple[dict[str, dict[Place, float]], int]:
    """Returns the mean validation score of each of our candidates by place, where all have run, and how many places
    there are.

    Args:
        findings (Findings): What was measured.
        task (str): :obj:`"node"` or :obj:`"link"`.
    """
    places: dict[Place, None] = {}
    ours: Contender | None = None
    for experiment in findings.work.experiments:
        for contender in experiment.contenders:
            if (contender.name, contender.tuning) == OURS:
                ours = contender
                places |= {s.decided_at: None for s in experiment.series if s.task == task and not s.protocol}
    if ours is None:
        return {}, 0
    found = {place: _scores(findings, place, ours.among(task)) for place in places}
    whole = {place: scores for place, scores in found.items() if scores is not None}
    by_candidate = {
        candidate.describe(): {place: scores[number] for place, scores in whole.items()}
        for number, candidate in enumerate(ours.among(task))
    }
    return (by_candidate if whole else {}), len(places)


def _scores(findings: Findings, place: Place, candidates: tuple[Candidate, ...]) -> list[float] | None:
    found = [findings.work.known.validation(*place, candidate) for candidate in candidates]
    whole = [validated.mean for validated in found if validated is not None]
    return whole if len(whole) == len(found) else None
