"""Predictions of compiled passes: the same answers, from few programs."""

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter import compiled_pass
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.training.device import compilation
from tests import support

HEADS = {
    "classification": (["0", "1", "2"], "houlsby"),
    "span": ((), "houlsby"),
    "tags": (["O", "B-A", "I-A"], "houlsby"),
}
# Rows, length: after two calls the rest share two programs, 8 x 16 and 8 x 24.
SHAPES = [(3, 16), (3, 16), (5, 9), (1, 4), (8, 16), (2, 20), (2, 24), (2, 17)]


@pytest.fixture(scope="module")
def models(tiny_base_folder):
    """A model without XLA and one with it, with the same weights."""
    patch = pytest.MonkeyPatch()
    patch.setattr(compiled_pass, "AFTER", 2)
    patch.setattr(compiled_pass, "FEW_LENGTHS", (16, 24))
    base, made = load_base(tiny_base_folder), []
    for gpus in (0, 1):
        patch.setattr(compilation, "gpu_count", lambda gpus=gpus: gpus)
        model = AdapterModel(base)
        for name, (labels, _) in HEADS.items():
            model.add_adapter(name, labels, AdapterConfig(4, init_scale=0.3), head=name)
        made.append(model)
    for name in HEADS:
        kept = [model._tasks[name].values for model in made]
        for key, variable in kept[1].items():
            variable.assign(kept[0][key])
    yield made
    patch.undo()


@pytest.mark.parametrize("head", HEADS)
def test_the_answers_of_few_programs(head, models, capsys):
    for rows, length in SHAPES:
        inputs = support.batch(rows=rows, length=length)
        plain, compiled = (model(inputs, head).numpy() for model in models)
        assert compiled.shape == plain.shape
        np.testing.assert_allclose(compiled, plain, atol=1e-5)
    out, errors = capsys.readouterr()
    assert not out
    assert errors.count("XLA compiles") == 2
    mixed = [model(inputs, [head] * rows).numpy() for model in models]
    np.testing.assert_allclose(*mixed, atol=1e-5)
