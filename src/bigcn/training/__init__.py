"""Training: one loop for every model and task."""

from bigcn.training.config import Progress, TrainConfig, TrainResult
from bigcn.training.loop import seeded, train
from bigcn.training.session import TrainSession

__all__ = ["Progress", "TrainConfig", "TrainResult", "TrainSession", "seeded", "train"]
