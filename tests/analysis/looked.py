"""What the tests of analyses look at: a model whose adapters do something, and a trained run."""

import collections

import numpy as np
import tensorflow as tf
import tf_keras
from absl import flags

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.cli.analyze import TASK_ANALYSES, define_options, option_names
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.heads.classifier import Classifier
from tests.runs import command

LAYERS = 3
SIZES = {
    "vocab_size": 30, "hidden_size": 16, "num_layers": LAYERS, "num_attention_heads": 2,
    "inner_dim": 32, "max_sequence_length": 24,
}  # fmt: skip
LookedAt = collections.namedtuple("LookedAt", "data base run")

for analysis in TASK_ANALYSES:
    if any(name not in flags.FLAGS for name in option_names(analysis) or ()):
        define_options(analysis)


def model_of(preset="houlsby"):
    """A classifier whose variables are all random: adapters that do something, other LayerNorms."""
    tf_keras.utils.set_random_seed(0)
    model = Classifier(new_encoder(SIZES, PRESETS[preset]), num_labels=3)
    rng = np.random.default_rng(0)
    for name, variable in model.named_variables().items():
        kernel = name.endswith(("kernel", "embeddings"))
        shift = 1.0 if name.endswith("gamma") else 0.0
        variable.assign(rng.normal(shift, 0.3 if kernel else 0.1, variable.shape).astype("f4"))
    return model


def some_inputs(batch=5, seq=9):
    """Random inputs of different lengths."""
    rng = np.random.default_rng(1)
    mask = (np.arange(seq) < rng.integers(3, seq + 1, (batch, 1))).astype(np.int32)
    ids = rng.integers(1, 30, (batch, seq)).astype(np.int32) * mask
    types = (np.arange(seq) >= 4).astype(np.int32) * mask
    names = ("input_word_ids", "input_mask", "input_type_ids")
    return {name: tf.constant(value) for name, value in zip(names, (ids, mask, types), strict=True)}


def look(analysis, at, *more):
    """An analysis in this process; the message with which it ends, or None."""
    data = ("--task_name=mrpc", f"--data_dir={at.data}", f"--base_model={at.base}", "--do_eval")
    module, options = TASK_ANALYSES[analysis].module, option_names(analysis)
    return command(*data, *more, main=lambda words: run_job(module, words, options))
