"""The model card of a checkpoint: what it is, what it was trained on, how good it is, and what it is not for."""

from collections.abc import Mapping
from typing import Any

from bigcn.training.checkpoint import Checkpoint

#: What models are called beside the trained one.
TITLES = {"bigcn": "BiGCN (this model)", "gcn": "GCN", "mlp": "MLP", "majority": "majority class"}
#: The scores that the card lists, by task.
SCORES = {
    "node": {"accuracy": "accuracy", "macro_f1": "macro-F1", "ece": "calibration error"},
    "link": {"roc_auc": "ROC-AUC", "average_precision": "average precision"},
}


def model_card(checkpoint: Checkpoint) -> str:
    """Returns the model card in Markdown.

    Args:
        checkpoint (Checkpoint): The checkpoint of an estimator.
    """
    details, task = checkpoint.details, checkpoint.task or "node"
    data = details["data"]
    does = "labels nodes" if task == "node" else "embeds nodes to find their links"
    lines = [f"# {plain(data['name'])}: a BiGCN that {does}", ""]
    lines += ["## Data", "", *_data(data, details), ""]
    lines += ["## Scores", "", *_scores(details, task), ""]
    lines += ["## Model", "", *_model(details), ""]
    lines += ["## Limits", "", *_limits(details, task), ""]
    return "\n".join(lines)


def plain(text: Any) -> str:
    """Returns a user's text on one line, with what Markdown or HTML would take for markup escaped."""
    out = " ".join(str(text).split())
    for character in "\\`*_[]<>|#":
        out = out.replace(character, f"\\{character}")
    return out.replace("&", "&amp;")


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun, in the plural unless there is one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _data(data: Mapping[str, Any], details: Mapping[str, Any]) -> list[str]:
    kinds = ", ".join(counted(count, f"{kind} column") for kind, count in data["features"].items() if count)
    lines = [
        f"{counted(data['nodes'], 'node')}, {counted(data['edges'], 'weighted edge' if data['weighted'] else 'edge')}, "
        f"{counted(data['isolated'], 'isolated node')}; {kinds or 'no columns'}; {100 * data['missing']:.1f} % of the "
        "values were missing."
    ]
    if data["labels"]:
        shown = list(data["labels"].items())
        listed = ", ".join(f"{plain(name)} ({count:,})" for name, count in shown[:20])
        more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
        lines += ["", f"Classes: {listed}{more}; {counted(data['unlabelled'], 'node')} without a label."]
    split = details["split"]
    parts = ", ".join(f"{split[part]:,} {word}" for part, word in PARTS.items() if part in split)
    lines += ["", f"Split: {plain(split['protocol'])}{f' ({parts})' if parts else ''}, `split.safetensors`."]
    if not parts:
        lines[-1] = f"Split: {plain(split['protocol'])}, drawn from seed {split['seed']}."
    return lines


#: What the parts of a split are for.
PARTS = {"train": "train", "val": "validate", "test": "test"}


def _scores(details: Mapping[str, Any], task: str) -> list[str]:
    if details["report"] is None:
        return ["Training was interrupted. The test part has not been looked at; `--resume` goes on."]
    columns = SCORES[task]
    rows = {"bigcn": details["report"]["scores"], **details.get("beside", {})}
    lines = [f"| model | {' | '.join(columns.values())} |", f"|---|{'---:|' * len(columns)}"]
    for name, scores in rows.items():
        cells = (f"{100 * scores[key]:.1f} %" if key in scores else "–" for key in columns)
        lines.append(f"| {TITLES.get(name, plain(name))} | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "On the test part, which chose nothing; validation chose the form, the epoch and the temperature.",
    ]


def _model(details: Mapping[str, Any]) -> list[str]:
    chosen, tried = details["search"]["chosen"], len(details["search"]["trials"])
    settings = ", ".join(f"{key} = {plain(value)}" for key, value in chosen["model"].items() if value is not None)
    return [
        f"Chosen: {plain(chosen['name'])} ({tried} tried). {settings}.",
        "",
        "`BiGCNClassifier.load(folder)` or `BiGCN.from_pretrained(folder)` loads it; no file of it is pickled.",
    ]


def _limits(details: Mapping[str, Any], task: str) -> list[str]:
    lines = ["- It knows the columns and categories listed in `config.json`, and refuses tables with others."]
    if task == "node":
        lines.append("- It predicts one of the classes above for every node, also for nodes of none of them.")
        test = details["report"]["nodes"] if details["report"] else 0
        if test:
            lines.append(
                f"- Scores come from one split with {counted(test, 'test node')}: small differences may be chance."
            )
    else:
        lines.append("- A link is scored by how alike two nodes are to the model; a high score is no proof of a link.")
    lines.append("- A graph from another source may differ in ways that its columns do not show.")
    return lines
