"""Tasks of an `AdapterModel`: their configs, weights and models."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.ops import Tensor
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig, of_kind
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base import Base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.multi_adapter.inputs import require_strings
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.combining.stacking import on_top
from adapter_bert_tf.store.derivation import retrained
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.task_types import type_named
from adapter_bert_tf.training.tuning import Tuning, is_trained


@dataclasses.dataclass
class LiveTask:
    """One task of an `AdapterModel`."""

    config: dict[str, Any]  # As in `SavedAdapter`; result and origin of the initial weights.
    values: dict[str, Tensor]  # By common name; the variables of `model` if there is one.
    # Returns the model that trains it, or None. With a shared base it is a weak reference, because
    # the model takes far more memory than `values`.
    model: Callable[[], Any] = lambda: None
    members: tuple[Member, ...] = ()  # The initial members of a fusion.

    def __post_init__(self) -> None:
        known = self.config["metric"] or self.config.get("command")
        self._saved_digest = self._digest() if known else None

    def current_config(self) -> dict[str, Any]:
        """The config, without result and origin if the weights have changed since."""
        if self._saved_digest is None or self._digest() == self._saved_digest:
            return self.config
        return retrained(self.config)

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name in sorted(self.values):
            digest.update(np.ascontiguousarray(self.values[name]).data)
        return digest.hexdigest()

    @property
    def shares_base(self) -> bool:
        """Whether the task uses the shared base unchanged; not so for full and top-k tuning."""
        return not contents.tuning_of(self.config).changes_base

    @property
    def shared_depth(self) -> int:
        """Number of lowest layers that the task shares with the base."""
        return contents.tuning_of(self.config).frozen_layers if self.shares_base else 0


def describe_task(
    name: str,
    labels: Any,
    base: Base,
    config: Any,
    head: Any,
    tuning: Any,
    inputs: Mapping[str, Any],
    members: Sequence[Member] = (),
) -> dict[str, Any]:
    """Makes the config of a new task; arguments as of `add_adapter`. Raises `InputError`."""
    if not isinstance(tuning, Tuning) or not isinstance(head, str):
        raise InputError(
            "tuning must be a Tuning, and head the name of a head. Received: "
            f"{preview(tuning)} and {preview(head)}"
        )
    adapter = PRESETS.get(config) if isinstance(config, str) else config
    if config is not None and of_kind(adapter, ModuleConfig) is None:
        raise InputError(
            f"config must be one of {list(PRESETS)}, a configuration such as AdapterConfig, or "
            f"None. Received: {preview(config)}"
        )
    if adapter and adapter.borrowed_groups and not members:
        raise InputError(f"A {adapter.kind} needs members. Add it with add_fusion or stack=FOLDER.")
    if adapter and members and not adapter.borrowed_groups:
        adapter = on_top(adapter, *members)
    kind = type_named(head)  # Its labels are those that all tasks of the type have.
    own_labels = list(kind.labels) if kind.labels else require_strings(labels, "labels must be")
    task_config = schema.describe(
        name,
        own_labels,
        base.fingerprint(),
        tuning,
        adapter if tuning.needs_adapter else None,
        head,
        kind.inputs_for(own_labels) | dict(inputs),
        **base.named(),
        **({"members": [member.config["sha256"] for member in members]} if members else {}),
    )
    checks.check(task_config, f"Adapter {name!r}")
    if len(task_config["labels"]) == 1:
        raise InputError(
            "Labels must be two or more for classes, and none for scores. Received: "
            f"{preview(task_config['labels'])}"
        )
    return task_config


def make_encoder(
    base: Base, encoder: AdapterBertEncoder, adapter: ModuleConfig | None, tuning: Tuning
) -> AdapterBertEncoder | TaskEncoder:
    """Makes the encoder of a task; it shares what `tuning` does not train of a base's encoder."""
    if tuning.changes_base:
        own = base.new_encoder(frozen_layers=tuning.frozen_layers)
        base.assign(own.named_variables())
        return own
    depth = encoder.config["num_layers"]
    trained_groups = {
        spec.group for spec in encoder.specs().values() if is_trained(spec, depth, tuning)
    }
    replaced = adapter.replaced_groups if adapter else ()
    return TaskEncoder(
        encoder,
        adapter,
        own_norms="LayerNorm" in {*trained_groups, *replaced},
        own_pooler="pooler" in trained_groups,
        frozen_layers=tuning.frozen_layers,
    )
