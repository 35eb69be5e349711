"""A base that full tuning trained, exported as Hugging Face's files and used as a base."""

import json
import shutil

import numpy as np
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.base import load_base, open_base
from adapter_bert_tf.cli.store import main as store
from adapter_bert_tf.interop.base_folder import export_base
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests import support
from tests.refusals import raises_code


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """By name, a base with weights and one without."""
    folder = tmp_path_factory.mktemp("bases")
    config = support.CONFIG | {"hidden_act": "gelu_new"}
    support.write_hugging_face(folder / "given", config=config)
    shutil.copytree(folder / "given", folder / "random")
    (folder / "random" / "model.safetensors").unlink()
    random = folder / "random"
    paths = {"config_path": f"{random}/config.json", "vocabulary_path": f"{random}/vocab.txt"}
    return folder, {"given": load_base(str(folder / "given")), "random": open_base(**paths)}


def trained(base, folder, head="masked_words", tuning=None):
    """An adapter directory of full tuning whose weights all differ from the base's."""
    model = abt.AdapterModel(base)
    labels = [] if head == "masked_words" else ["a", "b"]
    tuning = tuning or Tuning("full")
    adapter = "pfeiffer" if tuning.needs_adapter else None
    task = model.add_adapter("x", labels, adapter, head=head, tuning=tuning, max_seq_length=16)
    rng = np.random.default_rng(0)
    for variable in task.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    model.save_adapter("x", folder)
    return task


@pytest.mark.parametrize("name", ["given", "random"])
def test_it_is_a_base_with_its_head(bases, tmp_path, name):
    folder, opened = bases
    task = trained(opened[name], tmp_path / "adapter")
    words = ["export", str(tmp_path / "adapter"), "--format=base", f"--output={tmp_path}/base"]
    assert store([*words, f"--base_model={folder}/{name}"]) in (None, 0)
    again = load_base(str(tmp_path / "base"))
    own = opened[name]
    assert again.config == own.config and again.vocabulary.pieces == own.vocabulary.pieces
    assert again.vocabulary.tokenizer == own.vocabulary.tokenizer
    assert again.has_pooler is (name == "given")
    variables = task.named_variables()
    for common, value in {**again.stored_weights, **again.pretraining_head}.items():
        if not common.startswith("bert/pooler") or name == "given":
            expected = variables[common].numpy()
            np.testing.assert_array_equal(value.reshape(expected.shape), expected, common)
    assert again.pretraining_head
    with raises_code("occupied"):
        export_base(load_adapter(tmp_path / "adapter"), str(tmp_path / "base"), own)


def test_a_task_leaves_its_head_out(bases, tmp_path):
    base = bases[1]["given"]
    trained(base, tmp_path / "adapter", "classification")
    export_base(load_adapter(tmp_path / "adapter"), str(tmp_path / "base"), base)
    again = load_base(str(tmp_path / "base"))
    assert again.pretraining_head == {} and again.has_pooler
    config = json.loads((tmp_path / "base" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"] and config["hidden_act"] == "gelu_new"


def test_adapters_are_refused(bases, tmp_path):
    base = bases[1]["given"]
    trained(base, tmp_path / "adapter", tuning=Tuning("adapters"))
    with raises_code("unsupported", "adapters"):
        export_base(load_adapter(tmp_path / "adapter"), str(tmp_path / "base"), base)


@pytest.mark.parity
def test_transformers_computes_the_same(bases, tmp_path):
    import torch
    import transformers

    base = bases[1]["given"]
    task = trained(base, tmp_path / "adapter")
    export_base(load_adapter(tmp_path / "adapter"), str(tmp_path / "base"), base)
    theirs = transformers.BertForMaskedLM.from_pretrained(tmp_path / "base").eval()
    inputs = support.batch()
    names = {
        "input_ids": "input_word_ids",
        "attention_mask": "input_mask",
        "token_type_ids": "input_type_ids",
    }
    with torch.no_grad():
        expected = theirs(**{name: torch.tensor(inputs[own]) for name, own in names.items()})
    used = inputs["input_mask"].astype(bool)
    got = task(inputs).numpy()
    np.testing.assert_allclose(got[used], expected.logits.numpy()[used], atol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "base")
    words = ["the", "cat", "sat"]
    assert tokenizer(" ".join(words)).input_ids == [2, *map(support.VOCABULARY.index, words), 3]
