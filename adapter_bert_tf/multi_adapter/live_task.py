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
      config: dict as in `SavedAdapter`; its metric belongs to the initial weights.
      values: dict from common name to tensor, or to the variables of `model` if there is one.
      model: function that returns the model that trains it, or None. With a shared base it is a
        weak reference, because the model takes far more memory than `values`.
      members: the initial members of a fusion.
    """

    config: dict[str, Any]
    values: dict[str, Tensor]
    model: Callable[[], Any] = lambda: None
    members: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        self._metric_digest = self._digest() if self.config["metric"] else None

    def current_config(self) -> dict[str, Any]:
        """Returns the config, without the metric if the weights have changed since."""
        if self._metric_digest is None or self._digest() == self._metric_digest:
            return self.config
        return self.config | {"metric": None}

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name in sorted(self.values):
            digest.update(np.ascontiguousarray(self.values[name]).data)
        return digest.hexdigest()

    @property
    def tuning(self) -> Tuning:
        """The tuning method."""
        value: Tuning = contents.tuning_of(self.config)
        return value

    @property
    def shares_base(self) -> bool:
        """Whether the task uses the shared base unchanged; not so for full and top-k tuning."""
        return not self.tuning.changes_base
