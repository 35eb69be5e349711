"""NVIDIA cards that the user hides from CUDA; without TensorFlow."""

import re
from typing import TypeAlias

VISIBLE = "CUDA_VISIBLE_DEVICES"
Capability: TypeAlias = tuple[int, int]  # NVIDIA's "compute capability", major and minor.


def hides_all(visible: str | None) -> bool:
    """Whether a value of `CUDA_VISIBLE_DEVICES` hides all cards.

    Clusters hide them by a word that names no card, such as `NoDevFiles`.
    """
    return visible is not None and not re.match(r"\s*(\d|GPU-|MIG-)", visible)
