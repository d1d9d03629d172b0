"""Speed, as ratios against peers in one run."""

from bigcn.bench.growth import growth
from bigcn.bench.settings import against_settings
from bigcn.bench.steps import against_direct, against_peer

__all__ = ["against_direct", "against_peer", "against_settings", "growth"]
