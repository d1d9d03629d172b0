"""Finding wrong edges and missing links, by features and structure, without labels."""

from bigcn.links.ranking import ScoredPairs, missing_links, suspicious_edges
from bigcn.links.scoring import LinkScorer

__all__ = ["LinkScorer", "ScoredPairs", "missing_links", "suspicious_edges"]
