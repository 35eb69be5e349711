"""Weights that come with a call: equal to an encoder's own, one for each row, shared or not."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base import load_base
from tests import support

CONFIGS = {
    **PRESETS,
    "none": None,
    "normalized": AdapterConfig(4, normalize_output=True),
    "all knobs": AdapterConfig(4, layers=(1,), layer_norm=True, depth=2, activation="tanh"),
}


def _own_values(encoder, seed):
    """Gives adapters, LayerNorms and pooler random values and returns them."""
    rng = np.random.default_rng(seed)
    specs = encoder.specs()
    own = {
        name: variable
        for name, variable in encoder.named_variables().items()
        if specs[name].group in ("adapters", "LayerNorm", "pooler")
    }
    for variable in own.values():
        variable.assign_add(rng.normal(size=variable.shape) * 0.3)
    return {name: variable.numpy() for name, variable in own.items()}


@pytest.mark.parametrize("name", CONFIGS)
def test_given_weights_compute_what_variables_compute(name, tiny_base_folder):
    base, inputs = load_base(tiny_base_folder), support.batch(rows=4)
    encoder = base.build_encoder(CONFIGS[name])
    values = _own_values(encoder, 1)
    given = base.build_encoder()(inputs, module=module_from_values(CONFIGS[name], _tensors(values)))
    for key, expected in encoder(inputs).items():
        np.testing.assert_allclose(given[key], expected, atol=2e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_each_row_has_its_own_weights(name, tiny_base_folder):
    base, inputs = load_base(tiny_base_folder), support.batch(rows=4)
    encoders = [base.build_encoder(CONFIGS[name]) for _ in range(2)]
    first, second = (_own_values(encoder, seed) for seed, encoder in enumerate(encoders))
    rows = [0, 1, 1, 0]
    values = {key: np.stack([first[key], second[key]])[rows] for key in first}
    given = base.build_encoder()(
        inputs, module=module_from_values(CONFIGS[name], _tensors(values), ROWS)
    )
    for key in ("sequence_output", "pooled_output"):
        for i, which in enumerate(rows):
            # Sums in another order differ by up to 6e-6 on some processors.
            np.testing.assert_allclose(given[key][i], encoders[which](inputs)[key][i], atol=2e-5)


def test_what_a_task_encoder_has_of_its_own_leaves_the_shared_base_alone(tiny_base_folder):
    base, inputs = load_base(tiny_base_folder), support.batch()
    shared = base.build_encoder()
    before = shared(inputs)["pooled_output"].numpy()
    task = TaskEncoder(shared, AdapterConfig(4), own_pooler=True)
    np.testing.assert_array_equal(task(inputs)["pooled_output"], before)
    values = _own_values(task, 3)
    assert len(values) == 2 * 2 * 4 + 5 * 2 + 2
    np.testing.assert_array_equal(shared(inputs)["pooled_output"], before)
    own = base.build_encoder(AdapterConfig(4))
    for name, value in values.items():
        own.named_variables()[name].assign(value)
    np.testing.assert_allclose(
        task(inputs)["pooled_output"], own(inputs)["pooled_output"], atol=1e-6
    )


@pytest.mark.parametrize("own", [{}, {"own_norms": False, "own_pooler": True}], ids=str)
def test_config_round_trip_rebuilds_a_task_encoder(own, tiny_base_folder):
    task = TaskEncoder(load_base(tiny_base_folder).build_encoder(), AdapterConfig(4), **own)
    twin = TaskEncoder.from_config(task.get_config())
    assert {name: v.shape for name, v in twin.named_variables().items()} == {
        name: v.shape for name, v in task.named_variables().items()
    }
    assert twin.get_config() == task.get_config()


def _tensors(values):
    return {name: tf.constant(value) for name, value in values.items()}
