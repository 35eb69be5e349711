"""Adapters from and for AdapterHub's library `adapters`: its files, labels, refusals."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.adapterhub_files.exporting import export_adapter
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.refusals import raises_code
from tests.support import GOLDEN

HUB = GOLDEN.parent / "adapterhub"  # make.py there says how it was made.
NAMES = ("houlsby", "pfeiffer", "parallel")


@pytest.fixture(scope="module")
def base():
    return load_base(str(HUB / "base"))


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_of_the_library_gives_its_logits(name, base, tmp_path):
    figures = np.load(HUB / "logits.npz")
    saved = import_adapter(str(HUB / name), base)
    assert saved.config["labels"] == ["no", "maybe", "yes"]
    save_adapter(str(tmp_path / "a"), saved.config, saved.weights)
    model = AdapterModel(base)
    model.load_adapter(str(tmp_path / "a"))
    inputs = {
        "input_word_ids": figures["ids"],
        "input_mask": figures["mask"],
        "input_type_ids": np.zeros_like(figures["ids"]),
    }
    np.testing.assert_allclose(model(inputs, adapter=name), figures[name], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_exporting_gives_the_librarys_own_files_back(name, base, tmp_path):
    saved = import_adapter(str(HUB / name), base)
    export_adapter(saved, str(tmp_path / name), base)
    for file in ("adapter.safetensors", "model_head.safetensors"):
        theirs, ours = (safetensors.numpy.load_file(f / name / file) for f in (HUB, tmp_path))
        np.testing.assert_equal(ours, theirs)
    for file in ("adapter_config.json", "head_config.json"):
        theirs, ours = (json.loads((f / name / file).read_text()) for f in (HUB, tmp_path))
        different = {
            key for key, value in ours["config"].items() if value != theirs["config"].get(key)
        }
        # How it starts; and the library ignores original_ln_before of parallel adapters.
        assert different <= {"init_weights"}
    again = import_adapter(str(tmp_path / name), base)
    np.testing.assert_equal(again.weights, saved.weights)
    assert again.config["adapter"] == saved.config["adapter"]


def test_a_task_of_another_name_than_the_adapter(base):
    saved = import_adapter(str(HUB / "pfeiffer"), base, "tsv")
    assert (saved.config["task"], saved.config["name"]) == ("tsv", "pfeiffer")
    assert "name" not in import_adapter(str(HUB / "pfeiffer"), base, "pfeiffer").config


THREE = ["no", "maybe", "yes"]
LABELS = {  # What the file says, what is given, and what comes of it.
    "as the file": ({"no": 0, "maybe": 1, "yes": 2}, THREE, THREE),
    "only numbered": (None, ["a", "b", "c"], ["a", "b", "c"]),
    "named by number": ({f"LABEL_{i}": i for i in range(3)}, ["a", "b", "c"], ["a", "b", "c"]),
    "another order": ({"no": 0, "maybe": 1, "yes": 2}, THREE[::-1], "mismatch: labels"),
    "others": ({"no": 0, "maybe": 1, "yes": 2}, ["a", "b", "c"], "mismatch: labels"),
    "too few": (None, ["a", "b"], "mismatch: labels"),
    "one twice": (None, ["a", "a", "b"], "invalid: labels"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_that_are_given(case, base, tmp_path):
    ids, given, expected = LABELS[case]
    folder = shutil.copytree(HUB / "pfeiffer", tmp_path / "a")
    _edit("head_config.json", lambda v: v["config"].update(label2id=ids))(folder)
    if isinstance(expected, list):
        saved = import_adapter(str(folder), base, labels=given)
        assert saved.config["labels"] == expected
        return
    with raises_code(expected):
        import_adapter(str(folder), base, labels=given)


def _edit(file, change):
    def edit(folder):
        values = json.loads((folder / file).read_text())
        change(values)
        (folder / file).write_text(json.dumps(values))

    return edit


def _weights(file, change):
    def edit(folder):
        tensors = change(safetensors.numpy.load_file(folder / file))
        safetensors.numpy.save_file(tensors, folder / file)

    return edit


def _to_folder(file):
    def edit(folder):
        (folder / file).unlink()
        (folder / file).mkdir()

    return edit


DAMAGE = {
    "a pickle": (
        lambda d: (d / "adapter.safetensors").rename(d / "pytorch_adapter.bin"),
        "not_found: is a pickle",
    ),
    "no head": (
        lambda d: (d / "model_head.safetensors").unlink(),
        "not_found: model_head.safetensors",
    ),
    "cut": (
        lambda d: (d / "adapter.safetensors").write_bytes(b"\x10" + b"\0" * 7),
        "damaged: adapter.safetensors",
    ),
    "no json": (lambda d: (d / "head_config.json").write_text("{"), "damaged: head_config.json"),
    "of RoBERTa": (
        _edit("adapter_config.json", lambda v: v.update(model_type="roberta")),
        "unsupported: 'roberta'",
    ),
    "another width": (
        _edit("adapter_config.json", lambda v: v.update(hidden_size=768)),
        "unsupported: own (base_model). Received: 768",
    ),
    "compacter": (
        _edit("adapter_config.json", lambda v: v["config"].update(phm_layer="other")),
        "unsupported: 'phm_layer'",
    ),
    "a learned scale without weights": (
        _edit("adapter_config.json", lambda v: v["config"].update(scaling="learned")),
        "damaged: .scaling",
    ),
    "a scale of another name": (
        _edit("adapter_config.json", lambda v: v["config"].update(scaling="random")),
        "unsupported: 'random'",
    ),
    "no scale": (
        _edit("adapter_config.json", lambda v: v["config"].update(scaling=float("nan"))),
        "invalid: scale",
    ),
    "of prompt tuning": (
        _edit("adapter_config.json", lambda v: v["config"].update(architecture="prompt_tuning")),
        "unsupported: prompt_tuning",
    ),
    "text for a switch": (
        _edit("adapter_config.json", lambda v: v["config"].update(mh_adapter="no")),
        "unsupported: mh_adapter",
    ),
    "an object for layers": (
        _edit("adapter_config.json", lambda v: v["config"].update(leave_out={})),
        "damaged: leave_out",
    ),
    "a folder for weights": (_to_folder("adapter.safetensors"), "damaged: adapter.safetensors"),
    "integers": (
        _weights("adapter.safetensors", lambda t: {k: v.astype("i1") for k, v in t.items()}),
        "damaged: I8",
    ),
    "weights of no shape": (
        _weights("adapter.safetensors", lambda t: {k: np.ones((), "f4") for k in t}),
        "invalid: bottleneck_size",
    ),
    "a deep config": (
        lambda d: (d / "adapter_config.json").write_text("[" * 200_000),
        "damaged: adapter_config.json",
    ),
    "weights of another head": (
        _weights(
            "model_head.safetensors", lambda t: t | {"heads.x.7.weight": np.zeros((2, 2), "f4")}
        ),
        "unsupported: heads.x.7.weight",
    ),
    "without pooler": (
        _edit("head_config.json", lambda v: v["config"].update(layers=1)),
        "unsupported: 'layers': 1",
    ),
    "missing layers": (
        _edit("adapter_config.json", lambda v: v["config"].update(leave_out=[1])),
        "unsupported: adapters.houlsby",
    ),
    "labels that miss one": (
        _edit("head_config.json", lambda v: v["config"].update(label2id={"no": 0, "yes": 2})),
        "damaged: label2id",
    ),
    "labels of another type": (
        _edit("head_config.json", lambda v: v["config"].update(label2id=["no", "maybe", "yes"])),
        "damaged: label2id",
    ),
    "dropout of another type": (
        _edit("adapter_config.json", lambda v: v["config"].update(dropout="much")),
        "invalid: dropout",
    ),
    "layers of another type": (
        _edit("adapter_config.json", lambda v: v["config"].update(leave_out=7)),
        "damaged: leave_out",
    ),
    "other layers": (
        _edit("adapter_config.json", lambda v: v["config"].update(mh_adapter=False)),
        "unsupported: adapters.houlsby",
    ),
}


def test_bfloat16_is_read(base, tmp_path):
    shutil.copytree(HUB / "pfeiffer", tmp_path / "a")
    path = tmp_path / "a" / "adapter.safetensors"
    stored = {
        name: value.astype(ml_dtypes.bfloat16)
        for name, value in safetensors.numpy.load_file(path).items()
    }
    path.write_bytes(safetensors.numpy.save(stored))
    found = import_adapter(str(tmp_path / "a"), base).weights
    for name, value in import_adapter(str(HUB / "pfeiffer"), base).weights.items():
        np.testing.assert_allclose(found[name], value, rtol=0.01)


@pytest.mark.parametrize("case", DAMAGE)
def test_what_cannot_be_imported_is_said(case, base, tmp_path):
    change, error = DAMAGE[case]
    shutil.copytree(HUB / "houlsby", tmp_path / "a")
    change(tmp_path / "a")
    with raises_code(error):
        import_adapter(str(tmp_path / "a"), base)


UNEXPORTABLE = {
    "LayerNorms": ({"config": AdapterConfig(4)}, "unsupported: train_layer_norm=False"),
    "spans": ({"head": "span", "config": AdapterConfig(4)}, "unsupported: LayerNorm"),
    "no adapter": ({"tuning": "head", "config": None}, "unsupported: only bottleneck"),
    "a LayerNorm after": (
        {"config": AdapterConfig(4, normalize_output=True), "norms": False},
        "unsupported: only plain bottleneck",
    ),
    "that and LayerNorms": (  # Other training would not help.
        {"config": AdapterConfig(4, normalize_output=True)},
        "unsupported: only plain bottleneck",
    ),
    "two layers": (
        {"config": AdapterConfig(4, depth=2), "norms": False},
        "unsupported: only plain bottleneck",
    ),
}


@pytest.mark.parametrize("case", UNEXPORTABLE)
def test_what_cannot_be_exported_is_said(case, base, tmp_path):
    values, message = UNEXPORTABLE[case]
    model = AdapterModel(base)
    tuning = Tuning(values.get("tuning", "adapters"), train_layer_norm=values.get("norms", True))
    model.add_adapter(
        "task", ["a", "b"], values["config"], values.get("head", "classification"), tuning
    )
    model.save_adapter("task", str(tmp_path / "a"))
    with raises_code(message):
        export_adapter(load_adapter(str(tmp_path / "a")), str(tmp_path / "b"), base)
    assert not (tmp_path / "b").exists()


def test_only_its_own_base_completes_an_export(base, tmp_path):
    other = load_base(str(GOLDEN / "bert_model.ckpt"))
    saved = import_adapter(str(HUB / "houlsby"), base)
    with raises_code("mismatch", "vocab_size"):
        export_adapter(saved, str(tmp_path / "b"), other)
