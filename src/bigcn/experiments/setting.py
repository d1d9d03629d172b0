"""How the experiments of :mod:`bigcn.experiments.paper` are run, and what a run of them is."""

from dataclasses import dataclass

from bigcn.experiments.cells import protocol_of
from bigcn.experiments.contenders import Candidate
from bigcn.experiments.paper import CHOICE_SEEDS, SEEDS, Series
from bigcn.experiments.records import RunSpec
from bigcn.experiments.specs import make_run
from bigcn.training.config import PUBLISHED_STOPPING


@dataclass(frozen=True)
class Setting:
    """How the experiments are run.

    Args:
        device (str): Where missing runs are carried out, :obj:`"cpu"` or :obj:`"cuda"`; what has run elsewhere counts.
        seeds (tuple[int, ...], optional): The seeds. (default: the ten of the released code)
        max_epochs (int, optional): A cap on the epochs of every run. (default: the paper's)
    """

    device: str
    seeds: tuple[int, ...] = SEEDS
    max_epochs: int | None = None

    @property
    def is_short(self) -> bool:
        """Whether less is run than the paper asks for."""
        return self.seeds != SEEDS or self.max_epochs is not None

    @property
    def choice_seeds(self) -> tuple[int, ...]:
        """The seeds that all candidates run with."""
        return self.seeds[: len(CHOICE_SEEDS)]


def make_spec(setting: Setting, series: Series, value: float | None, candidate: Candidate, seed: int) -> RunSpec:
    """Returns one run of an experiment."""
    training = dict(candidate.training)
    if series.task == "link":
        training.pop("max_epochs", None)  # it always trains for 100
    if setting.max_epochs is not None:
        usual = PUBLISHED_STOPPING[series.task]["max_epochs"]
        training["max_epochs"] = min(setting.max_epochs, training.get("max_epochs", usual))
    return make_run(
        candidate.model,
        task=series.task,
        dataset=series.graph,
        protocol=protocol_of(series),
        case=series.case,
        value=value,
        seed=seed,
        device=setting.device,
        settings=candidate.settings_on(series.graph),
        training=training,
    )
