"""Adapters of languages in AdapterHub's files: their heads, and folders without one."""

import json
import shutil

import numpy as np
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.adapterhub_files.exporting import export_adapter
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter, is_adapterhub
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.store.contents import adapter_of
from adapter_bert_tf.training.tuning import Tuning
from tests.interop.adapterhub_test import HUB
from tests.interop.hub_files import edit_json, edit_weights
from tests.refusals import raises_code

HEAD = "model_head.safetensors"


@pytest.fixture(scope="module")
def base():
    return load_base(str(HUB / "base"))


@pytest.fixture(scope="module")
def language(base, tmp_path_factory):
    """An adapter directory of a language, and the same in AdapterHub's files."""
    folder, rng = tmp_path_factory.mktemp("language"), np.random.default_rng(0)
    model = abt.AdapterModel(base)
    trained = model.add_adapter(
        "en",
        config=PRESETS["pfeiffer+inv"].adjusted(size=5),
        head="masked_words",
        tuning=Tuning(train_layer_norm=False),
        max_seq_length=20,
    )
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    model.save_adapter("en", folder / "ours")
    export_adapter(load_adapter(folder / "ours"), str(folder / "hub"), base)
    return folder


def test_there_and_back(base, language):
    ours, again = load_adapter(language / "ours"), import_adapter(str(language / "hub"), base)
    assert again.config["head"] == ours.config["head"] == "masked_words"
    assert again.weights.keys() == ours.weights.keys()
    for name, value in ours.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)


def without_head(language, folder):
    shutil.copytree(language / "hub", folder)
    for name in ("head_config.json", HEAD):
        (folder / name).unlink()
    return folder


def test_a_language_without_a_head_goes_below_a_task(base, language, tmp_path, caplog):
    folder = without_head(language, tmp_path / "hub")
    assert is_adapterhub(str(folder))
    saved = import_adapter(str(folder), base, max_seq_length=20)
    assert "no head" in caplog.text
    save_adapter(tmp_path / "en", saved.config, saved.weights)
    ours = load_adapter(language / "ours").weights
    for name in (name for name in ours if not name.startswith("head/")):
        np.testing.assert_array_equal(saved.weights[name], ours[name])
    model = abt.AdapterModel(base)
    task = model.add_adapter("task", ("a", "b"), "pfeiffer", stack=tmp_path / "en")
    assert any(name.startswith("below/adapters/embeddings") for name in task.named_variables())


def test_a_decoder_of_another_base_is_refused(base, language, tmp_path):
    embeddings = base.weights["bert/embeddings/word_embeddings"]
    for change, is_right in ((0.0, True), (1.0, False)):
        folder = tmp_path / str(change)
        shutil.copytree(language / "hub", folder)
        edit_weights(
            folder, HEAD, lambda w, change=change: w | {"heads.en.3.weight": embeddings + change}
        )
        if is_right:
            assert import_adapter(str(folder), base).config["head"] == "masked_words"
        else:
            with raises_code("unsupported", "embeddings"):
                import_adapter(str(folder), base)


@pytest.mark.parametrize(
    "options", [{"layer_norm": False}, {"activation_function": "relu"}, {"layers": 1}]
)
def test_other_heads_are_refused(options, base, language, tmp_path):
    shutil.copytree(language / "hub", tmp_path / "hub")
    values = json.loads((tmp_path / "hub" / "head_config.json").read_text())["config"]
    edit_json(tmp_path / "hub", "head_config.json", config=values | options)
    with raises_code("unsupported"):
        import_adapter(str(tmp_path / "hub"), base)


@pytest.fixture(scope="module")
def task(base, language):
    """A task's adapter on top of the language, and the same in AdapterHub's files."""
    model, rng = abt.AdapterModel(base), np.random.default_rng(1)
    trained = model.add_adapter(
        "task",
        ("a", "b"),
        PRESETS["pfeiffer"].adjusted(size=3),
        tuning=Tuning(train_layer_norm=False),
        max_seq_length=20,
        stack=language / "ours",
    )
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    model.save_adapter("task", language / "task")
    export_adapter(load_adapter(language / "task"), str(language / "hub_task"), base)
    return model


def test_the_upper_adapter_of_a_stack_is_exported_alone(base, language, task):
    ours, again = load_adapter(language / "task"), import_adapter(str(language / "hub_task"), base)
    stack, alone = (adapter_of(saved.config) for saved in (ours, again))
    assert stack.above.specs(vars(base.config)) == alone.specs(vars(base.config))
    for name, value in ours.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)


@pytest.mark.parity
def test_the_library_stacks_both(base, language, task):
    import adapters
    import torch

    theirs = adapters.BertAdapterModel.from_pretrained(str(HUB / "base"))
    for name in ("hub", "hub_task"):
        theirs.load_adapter(str(language / name), use_safetensors=True)
    theirs.active_adapters = adapters.Stack("en", "task")
    theirs.active_head = "task"
    theirs.eval()
    ids = np.array([[2, 7, 9, 3], [2, 11, 3, 0]], np.int32)
    inputs = {"input_word_ids": ids, "input_mask": (ids > 0).astype("i4")}
    with torch.no_grad():
        expected = theirs(torch.tensor(ids), torch.tensor(inputs["input_mask"])).logits
    logits = task(inputs | {"input_type_ids": np.zeros_like(ids)}, "task")
    np.testing.assert_allclose(logits, expected, atol=2e-6)
