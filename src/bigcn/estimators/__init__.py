"""Estimators for graphs of one's own, in scikit-learn's manner."""

from bigcn.estimators.classifier import BiGCNClassifier
from bigcn.estimators.links import BiGCNLinkPredictor

__all__ = ["BiGCNClassifier", "BiGCNLinkPredictor"]
