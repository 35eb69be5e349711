"""Adapters of PEFT itself, on a tiny base: the same logits in both directions."""

import json
import re

import numpy as np
import pytest

from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.peft_files.exporting import export_peft
from adapter_bert_tf.interop.peft_files.importing import import_peft
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from tests.interop.adapterhub_parity_test import BASE, IDS, INPUTS, _randomize
from tests.runs import ROOT

pytestmark = pytest.mark.parity
PAGE = ROOT / "docs" / "from_peft.md"
MODELS = {
    "SEQ_CLS": "BertForSequenceClassification",
    "QUESTION_ANS": "BertForQuestionAnswering",
    "TOKEN_CLS": "BertForTokenClassification",
}
# The method, its options, the type of task.
CASES = {
    "LoRA": ("Lora", {"r": 4, "lora_alpha": 16}, "SEQ_CLS"),
    "a score": ("Lora", {"r": 2}, "SEQ_CLS"),
    "questions": ("Lora", {"r": 4}, "QUESTION_ANS"),
    "tags": ("Lora", {"r": 4, "lora_alpha": 16}, "TOKEN_CLS"),
    "every projection": (
        "Lora",
        {"r": 4, "target_modules": r".*encoder\.layer\.\d+\..*(query|key|value|dense)"},
        "SEQ_CLS",
    ),
    "one layer, stabilized": (
        "Lora",
        {"r": 4, "layers_to_transform": [1], "layers_pattern": "layer", "use_rslora": True},
        "SEQ_CLS",
    ),
    "patterns": (
        "Lora",
        {
            "r": 4,
            "target_modules": ["query", "output.dense"],
            "rank_pattern": {"layer.1.attention.self.query": 2, r"layer\.\d+\.output\.dense": 3},
            "alpha_pattern": {"query": 32, "attention.output.dense": 1},
        },
        "SEQ_CLS",
    ),
    "(IA)^3": ("IA3", {}, "SEQ_CLS"),
    "(IA)^3 of other modules": (
        "IA3",
        {
            "target_modules": ["query", "intermediate.dense", "output.dense"],
            "feedforward_modules": ["output.dense"],
        },
        "QUESTION_ANS",
    ),
    "all linear layers": (
        "Lora",
        {"r": 4, "lora_alpha": 6, "target_modules": "all-linear", "use_rslora": True},
        "SEQ_CLS",
    ),
    "patterns of all linear layers": (
        "Lora",
        {
            "r": 4,
            "target_modules": ["query", "dense"],
            "rank_pattern": {"pooler.dense": 2},
            "alpha_pattern": {"pooler.dense": 32},
        },
        "SEQ_CLS",
    ),
    "MiCA": ("Lora", {"r": 4, "init_lora_weights": "mica"}, "SEQ_CLS"),
    "all LayerNorms": ("Lora", {"r": 4, "modules_to_save": ["LayerNorm"]}, "SEQ_CLS"),
    "a trained pooler and LayerNorms": (
        "Lora",
        {"r": 4, "modules_to_save": ["classifier", "pooler", "output.LayerNorm"]},
        "SEQ_CLS",
    ),
}


@pytest.fixture(scope="module")
def base():
    return load_base(BASE)


def _theirs(case):
    import peft
    import torch
    import transformers

    method, options, task = CASES[case]
    labels = {"a score": 1}.get(case, 2 if CASES[case][2] == "QUESTION_ANS" else 3)
    model = getattr(transformers, MODELS[task]).from_pretrained(BASE, num_labels=labels)
    config = getattr(peft, f"{method}Config")(task_type=task, **options)
    wrapped = peft.get_peft_model(model, config)
    parts = ("lora_", "ia3_l", "modules_to_save")
    _randomize(torch, wrapped, parts)
    return torch, wrapped


def _logits(torch, model):
    with torch.no_grad():
        given = model(
            input_ids=torch.tensor(IDS).long(), attention_mask=torch.tensor(IDS > 0).long()
        )
    if hasattr(given, "start_logits"):
        return np.stack([given.start_logits.numpy(), given.end_logits.numpy()], 1)
    return given.logits.numpy()


def _ours(saved, base, folder):
    save_adapter(str(folder), saved.config, saved.weights)
    model = AdapterModel(base)
    name = model.load_adapter(str(folder))
    return model(INPUTS, adapter=name).numpy()


def _assert_same(given, expected):
    if expected.shape[1:] == (2, IDS.shape[1]):  # Questions: padding has no score with us.
        given, expected = given[:1], expected[:1]
    elif expected.ndim == 3:
        given, expected = given[IDS > 0], expected[IDS > 0]
    np.testing.assert_allclose(given, expected, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_both_ways(case, base, tmp_path):
    torch, model = _theirs(case)
    model.save_pretrained(tmp_path / "theirs")
    expected = _logits(torch, model)
    saved = import_peft(str(tmp_path / "theirs"), base)
    _assert_same(_ours(saved, base, tmp_path / "ours"), expected)
    heads = {"SEQ_CLS": "classification", "QUESTION_ANS": "span", "TOKEN_CLS": "tags"}
    assert saved.config["head"] == heads[CASES[case][2]]

    import peft
    import transformers

    export_peft(load_adapter(str(tmp_path / "ours")), str(tmp_path / "back"), base)
    task = CASES[case][2]
    labels = {"a score": 1}.get(case, 2 if CASES[case][2] == "QUESTION_ANS" else 3)
    plain = getattr(transformers, MODELS[task]).from_pretrained(BASE, num_labels=labels)
    again = peft.PeftModel.from_pretrained(plain, str(tmp_path / "back")).eval()
    _assert_same(_logits(torch, again), expected)
    options = json.loads((tmp_path / "back" / "adapter_config.json").read_text())
    assert options["peft_type"] == CASES[case][0].upper()
    own_export = import_peft(str(tmp_path / "back"), base)
    assert own_export.weights.keys() == saved.weights.keys()
    for name, value in saved.weights.items():
        np.testing.assert_array_equal(own_export.weights[name], value, err_msg=name)


@pytest.mark.parametrize("start", ["pissa", "olora", "lora_ga"])
def test_conversion_of_the_page(start, base, tmp_path, monkeypatch):
    """Starts that change the base, converted by the code of docs/from_peft.md."""
    import peft
    import torch
    import transformers

    monkeypatch.chdir(tmp_path)
    (code,) = re.findall("```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    plain = transformers.BertForSequenceClassification.from_pretrained(BASE, num_labels=3)
    config = peft.LoraConfig(r=4, lora_alpha=8, init_lora_weights=start, task_type="SEQ_CLS")
    if start == "lora_ga":
        from peft.tuners.lora.loraga import preprocess_loraga

        config.lora_ga_config = peft.LoraGAConfig()
        step = {"input_ids": torch.tensor(IDS).long(), "labels": torch.tensor([0, 2])}
        preprocess_loraga(plain, config, lambda: plain(**step).loss.backward())
    model = peft.get_peft_model(plain, config)
    model.save_pretrained("./START")
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    expected = _logits(torch, model.eval())
    exec(code, {"model": model})
    saved = import_peft("THEIRS", base)
    _assert_same(_ours(saved, base, tmp_path / "ours"), expected)
