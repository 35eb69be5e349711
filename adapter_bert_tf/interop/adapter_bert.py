"""Imports adapter-bert's trained checkpoints."""

import numpy as np

from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.base.assign import shapes_match
from adapter_bert_tf.base.loading import weights_digest
from adapter_bert_tf.base.readers import read_weights
from adapter_bert_tf.errors import Mismatch, Unsupported
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import checks, contents, schema
from adapter_bert_tf.store.derivation import derive, file_source
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.training.tuning import Tuning


def import_checkpoint(path, base, task, labels, **inputs):
    """Imports adapters, LayerNorms and head of a TF1 checkpoint of adapter-bert as `SavedAdapter`.

    `path` is the prefix of the checkpoint, which holds the whole model; `base` is the `Base` that
    it was trained on. `labels` are in the order of their ids, empty for regression; `inputs` are
    `texts` (2 for pairs) and `max_seq_length`. Raises `InputError` when it has no adapters, another
    number of labels, or another base.
    """
    values = read_weights(path)
    first_kernel = values.get("adapters/layer_0/attention/down_kernel")
    if first_kernel is None or first_kernel.ndim != 2 or "head/kernel" not in values:
        raise Unsupported(f"{path} has no adapters of adapter-bert, or no classifier.")
    fingerprint = base.fingerprint()
    if weights_digest(values) != fingerprint["weights_sha256"]:
        raise Mismatch(f"{path} was trained on a base other than base_model.", "base_model")
    adapter = PRESETS["adapter_bert"].adjusted(size=first_kernel.shape[1])
    versions = installed_versions() | {"imported from": "adapter-bert"}
    config = schema.describe(
        task, labels, fingerprint, Tuning(), adapter, inputs=inputs, versions=versions
    )
    config = derive(config, "import", [file_source(f"{path}.index")])
    checks.check(config, path)
    shapes = contents.expected_shapes(config)
    mismatched = {
        name: shape
        for name, shape in shapes.items()
        if name not in values or not shapes_match(values[name].shape, shape)
    }
    if mismatched:
        raise Mismatch(
            f"{path}: weights are missing or have another shape, with {len(labels)} labels: "
            f"{preview(mismatched)}"
        )
    weights = {name: np.reshape(values[name], shape) for name, shape in shapes.items()}
    return SavedAdapter(config, weights)
