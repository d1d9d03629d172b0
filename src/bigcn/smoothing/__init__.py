"""Denoising and completing a feature matrix without labels."""

from bigcn.smoothing.denoising import Denoised, denoise
from bigcn.smoothing.estimator import BiSmoother
from bigcn.smoothing.functional import smooth
from bigcn.smoothing.imputation import Imputation, ImputationChoice, fill_missing, impute
from bigcn.smoothing.selection import SmoothingChoice, rank_smoothing

__all__ = [
    "BiSmoother",
    "Denoised",
    "Imputation",
    "ImputationChoice",
    "SmoothingChoice",
    "denoise",
    "fill_missing",
    "impute",
    "rank_smoothing",
    "smooth",
]
