"""A task of an `AdapterModel`."""

import dataclasses
from collections.abc import Callable
from typing import Any

from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.store import schema


@dataclasses.dataclass
class LiveTask:
    """One task of an `AdapterModel`.

    Args:
      config: dict as in `SavedAdapter`.
      values: dict from common name to tensor, or to the variables of `model` if there is one.
      model: function that returns the model that trains it, or None if there is none. Where the
        base is shared it is the caller who keeps it: its training takes far more memory than
        `values`.
    """

    config: dict[str, Any]
    values: dict[str, Tensor]
    model: Callable[[], Any] = lambda: None

    @property
    def shares_base(self) -> bool:
        """Whether it is the shared base and small parts; full and top-k tuning are not."""
        return not schema.tuning_of(self.config).changes_base
