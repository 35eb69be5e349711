"""A task of an `AdapterModel`."""

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.training.tuning import Tuning


@dataclasses.dataclass
class LiveTask:
    """One task of an `AdapterModel`.

    Args:
      config: dict as in `SavedAdapter`; its metric is that of the weights it came with.
      values: dict from common name to tensor, or to the variables of `model` if there is one.
      members: of a fusion, as they were when it began.
      model: function that returns the model that trains it, or None if there is none. Where the
        base is shared it is the caller who keeps it: its training takes far more memory than
        `values`.
    """

    config: dict[str, Any]
    values: dict[str, Tensor]
    model: Callable[[], Any] = lambda: None
    members: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        self._came_with = self._digest() if self.config["metric"] else None

    def described(self) -> dict[str, Any]:
        """The config, without the metric if the weights are others now: it was not theirs."""
        if self._came_with is None or self._digest() == self._came_with:
            return self.config
        return self.config | {"metric": None}

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name in sorted(self.values):
            digest.update(np.ascontiguousarray(self.values[name]).data)
        return digest.hexdigest()

    @property
    def tuning(self) -> Tuning:
        """What was trained of it."""
        found: Tuning = contents.tuning_of(self.config)
        return found

    @property
    def shares_base(self) -> bool:
        """Whether it is the shared base and small parts; full and top-k tuning are not."""
        return not self.tuning.changes_base
