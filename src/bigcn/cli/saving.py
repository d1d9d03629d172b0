"""The folder of a model that `bigcn train` saves: whether it may go there, and whether a training may go on from it."""

from pathlib import Path
from typing import Any

from bigcn.cli.outputs import is_same
from bigcn.estimators.base import GraphEstimator
from bigcn.training.checkpoint import CheckpointError, check_target, read_config

#: How options that decide the result are called on the command line.
OPTIONS = {"search": "--quick", "max_epochs": "--max-epochs", "seed": "--seed"}


def check_folder(save: Path | None, resume: bool, force: bool) -> None:
    """Refuses a place for the model before anything is read or trained."""
    if save is None:
        if resume:
            raise ValueError("'--resume' goes on with the model in '--save', which must be named")
        return
    if resume and force:
        raise ValueError("'--resume' goes on with a model and '--force' replaces it: name one of the two")
    try:
        check_target(save, overwrite=resume or force)
    except ValueError as error:
        if "already holds a checkpoint" not in str(error):
            raise
        more = ", '--resume' goes on with it" if _goes_on(save) else ""
        raise ValueError(f"{error}: '--force' replaces it{more}") from None


def check_apart(save: Path | None, **others: Path | None) -> None:
    """Refuses what would be written into the folder of the model, which must hold nothing else.

    Args:
        save (Path, optional): The folder of the model.
        others (Path, optional): What else is written, by the name of its option.
    """
    for option, place in others.items():
        if save is None or place is None:
            continue
        if is_same(save, place):
            raise ValueError(f"'--save' and '--{option}' both name {save}: the model needs a folder of its own")
        if save.resolve() in place.resolve().parents:
            raise ValueError(
                f"'--{option}' names {place}, which lies in the folder of the model ({save}), and that must hold "
                "nothing else"
            )


def check_same(estimator: GraphEstimator, parameters: dict[str, Any]) -> None:
    """Refuses to go on with other options than those that training began with."""
    for name, option in OPTIONS.items():
        begun = getattr(estimator, name)
        if begun != parameters[name]:
            if name == "search":
                typed = f"{'without' if begun else 'with'} '{option}'"
            else:
                typed = f"without '{option}'" if begun is None else f"with '{option} {begun}'"
            raise ValueError(f"the training in '--save' began {typed}, and goes on with the same options alone")


def _goes_on(folder: Path) -> bool:
    """Tells whether anything is left to do for the model in a folder: to train it, or to compare it with others."""
    try:
        details = read_config(folder)["details"]
        return not (details["search"]["finished"] and "beside" in details)
    except (CheckpointError, KeyError, TypeError):
        return False
