"""The adapter directory: round trip into another model, and what is refused."""

import json

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.tasks.classifier import Classifier
from adapter_bert_tf.training.trained import Tuning, select_trained
from tests import support

ADAPTER = AdapterConfig(bottleneck_size=4, init_scale=0.3)


def _model(folder, adapter=ADAPTER, labels=2):
    return Classifier(load_base(folder).build_encoder(adapter), labels)


def _save(base_folder, folder, method="adapters"):
    model = _model(base_folder)
    trained = select_trained(model, Tuning(method))
    for variable in trained.values():
        variable.assign_add(np.random.default_rng(1).normal(size=variable.shape) * 0.1)
    config = {"method": method, "tuning": {"method": method}, "task": "mrpc",
              "adapter": ADAPTER.__dict__,
              "labels": ["0", "1"], "metric": {"name": "f1", "value": 0.5, "split": "dev"},
              "base": load_base(base_folder).fingerprint(), "versions": {"tensorflow": "2.20"},
              "command": "python run_classifier.py"}
    save_adapter(str(folder), config, trained)
    return model


@pytest.mark.parametrize("method", ["adapters", "full", "layer_norm"])
def test_round_trip(method, tiny_base_folder, tmp_path):
    model = _save(tiny_base_folder, tmp_path / "a", method)
    saved = load_adapter(str(tmp_path / "a"))
    twin = _model(tiny_base_folder)
    if method == "layer_norm":  # The adapters of this test are random, and not saved then.
        saved.weights.update({n: v.numpy() for n, v in model.named_variables().items()
                              if n.startswith("adapters/")})
    saved.assign_to(twin.named_variables(), load_base(tiny_base_folder).fingerprint())
    inputs = support.batch()
    np.testing.assert_array_equal(model(inputs), twin(inputs))


def test_files_and_card(tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "README.md", "adapter.safetensors", "adapter_config.json"]
    text = (tmp_path / "a" / "README.md").read_text()
    assert "f1 = 0.5000 (dev)" in text and "size 4" in text
    assert not (tmp_path / "a.tmp").exists()


def test_saving_again_replaces_an_adapter_and_nothing_else(tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a", "head")
    _save(tiny_base_folder, tmp_path / "a")
    assert load_adapter(str(tmp_path / "a")).config["method"] == "adapters"
    (tmp_path / "a" / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"will not be replaced: it holds \['thesis.txt'\]"):
        _save(tiny_base_folder, tmp_path / "a")
    assert (tmp_path / "a" / "thesis.txt").exists()


def test_another_base_is_refused(tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    support.write_google(tmp_path / "other", support.random_weights(seed=5))
    other = load_base(str(tmp_path / "other"))
    model = _model(str(tmp_path / "other"))
    with pytest.raises(InputError, match=r"another base\. weights_sha256"):
        load_adapter(str(tmp_path / "a")).assign_to(model.named_variables(), other.fingerprint())


@pytest.mark.parametrize("change", [{"adapter": AdapterConfig(bottleneck_size=8)}, {"labels": 3},
                                    {"adapter": None}])
def test_another_model_is_refused(change, tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    model = _model(tiny_base_folder, **change)
    before = model.head.kernel.numpy()
    with pytest.raises(InputError, match="does not fit"):
        load_adapter(str(tmp_path / "a")).assign_to(
            model.named_variables(), load_base(tiny_base_folder).fingerprint())
    np.testing.assert_array_equal(model.head.kernel, before)


def _cut(path):
    path.write_bytes(path.read_bytes()[:100])


def _without_layer_norms(path):
    weights = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file({k: v for k, v in weights.items() if "LayerNorm" not in k}, path)


DAMAGE = {
    "no config": (lambda d: (d / "adapter_config.json").unlink(), "No adapter"),
    "config cut": (lambda d: _cut(d / "adapter_config.json"), "damaged"),
    "weights cut": (lambda d: _cut(d / "adapter.safetensors"), "damaged"),
    "no weights": (lambda d: (d / "adapter.safetensors").unlink(), "damaged"),
    "config is a list": (lambda d: (d / "adapter_config.json").write_text("[1]"), "misses"),
    "no LayerNorms": (lambda d: _without_layer_norms(d / "adapter.safetensors"), "disagree about"),
    "no labels": (lambda d: (d / "adapter_config.json").write_text(
        json.dumps({"method": "adapters", "task": "x", "base": {}})), "misses"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_refused(case, tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    change, message = DAMAGE[case]
    change(tmp_path / "a")
    with pytest.raises(InputError, match=message):
        load_adapter(str(tmp_path / "a"))
