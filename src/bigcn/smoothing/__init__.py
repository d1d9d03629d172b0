"""Denoising a feature matrix without labels."""

from bigcn.smoothing.estimator import BiSmoother
from bigcn.smoothing.functional import smooth
from bigcn.smoothing.selection import SmoothingChoice, rank_smoothing

__all__ = ["BiSmoother", "SmoothingChoice", "rank_smoothing", "smooth"]
