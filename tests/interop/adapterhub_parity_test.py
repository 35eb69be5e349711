"""Adapters of the library `adapters` itself, on a tiny base: the same logits in both directions."""

import re

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.methods.compacter import CompacterConfig
from adapter_bert_tf.adapters.methods.gated import GatedConfig
from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.methods.prefix import PrefixConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.adapterhub_files.exporting import TAKEN_NAMES, export_adapter, hub_name
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.interop.hub_files import HUB
from tests.runs import ROOT

pytestmark = pytest.mark.parity
BASE = str(HUB / "base")
PAGE = ROOT / "docs" / "from_adapterhub.md"
IDS = np.array([[2, 7, 9, 11, 3], [2, 11, 3, 0, 0]], "i4")
INPUTS = {
    "input_word_ids": IDS,
    "input_mask": (IDS > 0).astype("i4"),
    "input_type_ids": np.zeros_like(IDS),
}


@pytest.fixture(scope="module")
def base():
    return load_base(BASE)


def _options(preset, **options):
    return lambda adapters: getattr(adapters, preset)(**options)


CONFIGS = {
    "sizes by layer": _options("DoubleSeqBnConfig", reduction_factor={"0": 2, "default": 4}),
    "learned scales": _options("ParBnConfig", reduction_factor=4, scaling="learned"),
    "scales by channel": _options("SeqBnConfig", reduction_factor=4, scaling="channel"),
    "capitals": _options("SeqBnConfig", reduction_factor=4, non_linearity="GELU"),
    "no activation": _options("SeqBnConfig", reduction_factor=4, non_linearity="linear"),
    "fast GELU": _options("SeqBnConfig", reduction_factor=4, non_linearity="gelu_fast"),
    "options of no effect": _options(
        "DoubleSeqBnConfig",
        reduction_factor=4,
        residual_before_ln=False,
        adapter_residual_before_ln=True,
    ),
    "options of no effect in parallel": _options(
        "ParBnConfig",
        reduction_factor=4,
        residual_before_ln="post_add",
        adapter_residual_before_ln=True,
        original_ln_before=True,
    ),
    "LoRA": _options("LoRAConfig", r=4, alpha=6),
    "LoRA of other projections": _options(
        "LoRAConfig",
        attn_matrices=["q", "k"],
        intermediate_lora=True,
        output_lora=True,
        leave_out=[0],
    ),
    "(IA)^3": _options("IA3Config"),
    "Compacter": _options("CompacterConfig", phm_dim=2, reduction_factor=4),
    "Compacter++": _options(
        "CompacterPlusPlusConfig", phm_dim=4, reduction_factor=2, phm_rank=2, leave_out=[1]
    ),
    "LoRA with gates": _options("LoRAConfig", r=4, alpha=6, use_gating=True, leave_out=[1]),
    "an adapter with gates": _options("ParBnConfig", reduction_factor=4, use_gating=True),
    "an invertible part": _options("SeqBnInvConfig", reduction_factor=4),
    "another invertible part": _options(
        "DoubleSeqBnInvConfig",
        reduction_factor=4,
        inv_adapter_reduction_factor=4,
        leave_out=[1],
    ),
    "a union": lambda adapters: adapters.ConfigUnion(adapters.SeqBnConfig(reduction_factor=4)),
    "an invertible part in a union": lambda adapters: adapters.ConfigUnion(
        adapters.SeqBnInvConfig(reduction_factor=4), adapters.LoRAConfig(r=4, alpha=6)
    ),
}


# Of the names of what is trained.
PARTS = (
    *("adapters.", "loras.", "phm_rule", "heads.", "scaling", "classifier", "qa_outputs"),
    *("prefix_tunings", "prefix_gates", "invertible_adapters"),
)


def _randomize(torch, model, parts=PARTS):
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if any(part in name for part in parts):
                parameter.normal_(std=0.3)
    model.eval()


# Gates of the library read padding, so a text by itself has the same logits, not a padded one.
def _run_alone(torch, model, ids):
    rows = [torch.tensor(row[row > 0]).long()[None] for row in ids]
    with torch.no_grad():
        return np.concatenate([model(input_ids=row).logits.numpy() for row in rows])


PREFIX = {"prefix_length": 3, "bottleneck_size": 5}
PREFIXES = {
    "a prefix": _options("PrefixTuningConfig", **PREFIX),
    "a flat prefix": _options("PrefixTuningConfig", flat=True, prefix_length=2, leave_out=[0]),
    "a prefix with a gate": _options("PrefixTuningConfig", **PREFIX, use_gating=True),
    "mix and match": lambda adapters: adapters.MAMConfig(
        adapters.PrefixTuningConfig(**PREFIX), adapters.ParBnConfig(reduction_factor=4)
    ),
    "UniPELT": lambda adapters: adapters.UniPELTConfig(
        adapters.PrefixTuningConfig(**PREFIX),
        adapters.SeqBnConfig(reduction_factor=4),
        adapters.LoRAConfig(r=4, alpha=6),
    ),
}


@pytest.mark.parametrize("ejected", [False, True], ids=["trained", "ejected"])
@pytest.mark.parametrize("case", PREFIXES)
def test_prefixes_that_the_page_converts(case, ejected, base, tmp_path, monkeypatch):
    """Saved and converted by the code of docs/from_adapterhub.md."""
    import adapters
    import torch

    monkeypatch.chdir(tmp_path)
    model = _flexible(adapters)
    model.add_adapter("mood", config=PREFIXES[case](adapters), set_active=True)
    model.add_classification_head("mood", num_labels=3)
    _randomize(torch, model)
    if ejected:
        model.eject_prefix_tuning("mood")
    (code,) = re.findall("```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(code, {"model": model})
    found = _ours(import_adapter("THEIRS", base), base, tmp_path / "ours")
    np.testing.assert_allclose(found, _run_alone(torch, model, IDS), atol=2e-6)


def _flexible(adapters):
    return adapters.AutoAdapterModel.from_pretrained(BASE)


def _run(torch, model):
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(IDS).long(),
            attention_mask=torch.tensor(IDS > 0).long(),
        )


def _ours(saved, base, folder):
    save_adapter(str(folder), saved.config, saved.weights)
    model = AdapterModel(base)
    return model(INPUTS, model.load_adapter(str(folder))).numpy()


@pytest.mark.parametrize("case", CONFIGS)
def test_methods(case, base, tmp_path):
    import adapters
    import torch

    model = _flexible(adapters)
    model.add_adapter("a", config=CONFIGS[case](adapters), set_active=True)
    model.add_classification_head("a", num_labels=3)
    _randomize(torch, model)
    model.save_adapter(str(tmp_path / "hub"), "a", use_safetensors=True)
    found = _ours(import_adapter(str(tmp_path / "hub"), base), base, tmp_path / "ours")
    np.testing.assert_allclose(found, _run_alone(torch, model, IDS), atol=2e-6)


def _static(name, **options):
    def make(adapters):
        import transformers

        model = getattr(transformers, name).from_pretrained(BASE, **options)
        adapters.init(model)
        return model

    return make


def _with_head(verb, **options):
    def make(adapters):
        model = _flexible(adapters)
        getattr(model, verb)("a", **options)
        return model

    return make


HEADS = {
    "static classes": _static("BertForSequenceClassification", num_labels=3),
    "static scores": _static("BertForSequenceClassification", num_labels=1),
    "static questions": _static("BertForQuestionAnswering", num_labels=2),
    "static tags": _static("BertForTokenClassification", num_labels=3),
    "tags": _with_head("add_tagging_head", num_labels=3, id2label={0: "O", 1: "B-A", 2: "I-A"}),
    "classes on the pooler": _with_head(
        "add_classification_head", num_labels=3, layers=1, use_pooler=True
    ),
    "label sets": _with_head("add_classification_head", num_labels=3, multilabel=True),
    "questions": _with_head("add_qa_head"),
    "masked words": _with_head("add_masked_lm_head"),
}


@pytest.mark.parametrize("case", HEADS)
def test_heads(case, base, tmp_path):
    import adapters
    import torch

    model = HEADS[case](adapters)
    model.add_adapter("a", config=adapters.SeqBnConfig(reduction_factor=4), set_active=True)
    _randomize(torch, model)
    model.save_adapter(str(tmp_path / "hub"), "a", use_safetensors=True)
    saved = import_adapter(str(tmp_path / "hub"), base, max_seq_length=20)
    _assert_same(_ours(saved, base, tmp_path / "ours"), _run(torch, model))


def _assert_same(ours, theirs):
    if "logits" in theirs:
        np.testing.assert_allclose(ours, theirs.logits.numpy(), rtol=1e-5, atol=4e-6)
        return
    for i, logits in enumerate((theirs.start_logits, theirs.end_logits)):
        is_real = IDS > 0
        np.testing.assert_allclose(ours[:, i][is_real], logits.numpy()[is_real], atol=2e-6)


EXPORTS = {  # Task type, number of labels, adapter.
    "sizes by layer": ("classification", 2, AdapterConfig(5, layer_sizes={0: 11})),
    "label sets": ("multi_label", 3, PRESETS["pfeiffer"]),
    "questions": ("span", 0, AdapterConfig(13, activation="linear")),
    "scores": ("classification", 0, PRESETS["scaled_parallel"]),
    "tags": ("tags", 3, PRESETS["houlsby"]),
    "LoRA": ("classification", 2, LoraConfig(3, alpha=7, projections=("key", "output"))),
    "stabilized LoRA": ("classification", 2, LoraConfig(4, rank_stabilized=True, layers=(1,))),
    "(IA)^3": ("classification", 2, Ia3Config(("value", "intermediate"))),
    "Compacter": ("classification", 2, CompacterConfig(8, n=2, rank=2, layers=(0,))),
    "a prefix": ("classification", 2, PrefixConfig(3)),
    "tags with a prefix": ("tags", 3, PrefixConfig(2, reparametrized=False, layers=(1,))),
    "mix and match": ("classification", 2, PRESETS["mam"].adjusted(size=5)),
    "an invertible part": ("classification", 2, PRESETS["pfeiffer+inv"].adjusted(size=5)),
    "an invertible part in a union": (
        "classification",
        2,
        UnionConfig((LoraConfig(3, alpha=7), *PRESETS["pfeiffer+inv"].adjusted(size=5).members)),
    ),
    "tags with an invertible part": ("tags", 3, PRESETS["houlsby+inv"].adjusted(layers=(0,))),
    "masked words": ("masked_words", 0, PRESETS["houlsby"]),
    "a language": ("masked_words", 0, PRESETS["pfeiffer+inv"].adjusted(size=5)),
    "gates": (
        "classification",
        2,
        GatedConfig(LoraConfig(4, alpha=7, alphas={"layer_0/query": 2})),
    ),
    "UniPELT": ("classification", 2, PRESETS["unipelt"].adjusted(size=5)),
}
GATED = ("gates", "UniPELT")


@pytest.mark.parametrize("case", EXPORTS)
def test_exports(case, base, tmp_path):
    import adapters
    import torch

    head, count, config = EXPORTS[case]
    ours, rng = AdapterModel(base), np.random.default_rng(0)
    trained = ours.add_adapter(
        "type", list("abc")[:count], config, head, Tuning(train_layer_norm=False), max_seq_length=20
    )
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.3)
    ours.save_adapter("type", str(tmp_path / "ours"))
    name = export_adapter(load_adapter(str(tmp_path / "ours")), str(tmp_path / "hub"), base)
    theirs = _flexible(adapters)
    theirs.load_adapter(str(tmp_path / "hub"), use_safetensors=True, set_active=True)
    theirs.active_head = name
    theirs.eval()
    logits = ours(INPUTS, "type").numpy()
    if case in GATED:
        np.testing.assert_allclose(logits, _run_alone(torch, theirs, IDS), atol=2e-6)
    else:
        _assert_same(logits, _run(torch, theirs))


def test_names_that_modules_of_pytorch_have():
    import torch

    attributes = {name for name in dir(torch.nn.ModuleDict()) if hub_name(name) == name}
    assert not attributes
    module = torch.nn.ModuleDict()
    for name in TAKEN_NAMES:
        module[hub_name(name)] = torch.nn.Identity()
