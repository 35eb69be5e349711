"""Parity with `transformers` on the real MiniLM weights: committed figures, and the real thing."""

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.interop.adapterhub_files.exporting import export_adapter
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.support import GOLDEN

FIGURES = GOLDEN.parent / "minilm.npz"


def _inputs(figures):
    return {name: figures[name] for name in ("input_word_ids", "input_mask", "input_type_ids")}


def _assert_close(output, expected, mask, every, atol):
    real = mask[:, ::every, None]
    np.testing.assert_allclose(
        output["sequence_output"].numpy()[:, ::every] * real,
        expected["sequence_output"] * real,
        atol=atol,
    )
    np.testing.assert_allclose(output["pooled_output"], expected["pooled_output"], atol=atol)


# adapter-bert's own start moves MiniLM's hidden states by up to 4e-4: see docs/defaults.md.
@pytest.mark.parametrize(
    ("preset", "atol"),
    [(None, 1e-4), ("houlsby", 1e-4), ("pfeiffer", 1e-4), ("adapter_bert", 1e-3)],
)
def test_figures_of_transformers(minilm, preset, atol):
    """Without adapters, and with adapters at init."""
    figures = np.load(FIGURES)
    lengths = figures["input_mask"].sum(1)
    assert len(lengths) == 64 and len(set(lengths)) > 20
    output = minilm.build_encoder(preset and PRESETS[preset])(_inputs(figures))
    _assert_close(output, figures, figures["input_mask"], every=5, atol=atol)


def test_adapters_at_init_change_next_to_nothing(minilm):
    inputs = _inputs(np.load(FIGURES))
    bare = minilm.build_encoder()(inputs)
    adapted = minilm.build_encoder(PRESETS["houlsby"])(inputs)
    real = inputs["input_mask"][..., None]
    for key, value in (("sequence_output", real), ("pooled_output", 1)):
        np.testing.assert_allclose(adapted[key] * value, bare[key] * value, atol=1e-5)


@pytest.mark.parity
def test_transformers_itself(minilm):
    """The same comparison with the library at hand (extra `parity`), at every position."""
    from benchmarks import parity_figures

    expected = parity_figures.transformers_outputs(
        minilm.weights_path.rsplit("/", 1)[0], *parity_figures.pairs()
    )
    inputs = _inputs(expected)
    for adapter in (None, PRESETS["houlsby"]):
        output = minilm.build_encoder(adapter)(inputs)
        _assert_close(output, expected, expected["input_mask"], every=1, atol=1e-4)


@pytest.mark.parity
def test_the_tokenizer_of_transformers_on_real_sentences(minilm, real_data):
    """All of MRPC's and CoLA's sentences, piece by piece."""
    import tensorflow as tf
    import transformers

    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.data.tokenization import TextEncoder
    from adapter_bert_tf.tasks import TASKS

    tokenizer = transformers.BertTokenizerFast.from_pretrained(
        minilm.weights_path.rsplit("/", 1)[0]
    )
    encode = tf.function(TextEncoder(minilm.vocabulary, 512))
    texts = []
    for name, folder in (("mrpc", "MRPC"), ("cola", "CoLA")):
        splits = read_examples(
            TASKS[name], str(real_data / "glue" / folder), ["train", "dev", "test"]
        )
        for examples in splits.values():
            texts += examples.text_a + (examples.text_b or [])
    assert len(texts) > 20000
    ids, _ = encode(tf.constant(texts))
    assert ids.to_list() == tokenizer(texts)["input_ids"]


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["houlsby", "pfeiffer"])
def test_adapters_of_the_library_adapters(kind, minilm, tmp_path):
    """Both ways on the real base: theirs imported, ours exported; the same logits."""
    import adapters
    import torch
    from adapters import AutoAdapterModel

    figures = _inputs(np.load(FIGURES))
    theirs = AutoAdapterModel.from_pretrained(minilm.weights_path.rsplit("/", 1)[0])
    config = {"houlsby": adapters.DoubleSeqBnConfig, "pfeiffer": adapters.SeqBnConfig}[kind]
    theirs.add_adapter("theirs", config=config(reduction_factor=6))
    theirs.add_classification_head("theirs", num_labels=3)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "adapters." in name or "heads." in name:
                parameter.normal_(std=0.1)
    theirs.save_adapter(str(tmp_path / "theirs"), "theirs", use_safetensors=True)
    imported = import_adapter(str(tmp_path / "theirs"), minilm)
    save_adapter(str(tmp_path / "imported"), imported.config, imported.weights)
    ours = AdapterModel(minilm)
    ours.load_adapter(str(tmp_path / "imported"))
    np.testing.assert_allclose(
        ours(figures, adapter="theirs"), _their_logits(torch, theirs, "theirs", figures), atol=1e-4
    )

    trained = ours.add_adapter("ours", ["a", "b"], kind, tuning=Tuning(train_layer_norm=False))
    rng = np.random.default_rng(0)
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    ours.save_adapter("ours", str(tmp_path / "ours"))
    export_adapter(load_adapter(str(tmp_path / "ours")), str(tmp_path / "exported"), minilm)
    theirs.load_adapter(str(tmp_path / "exported"), load_as="ours", use_safetensors=True)
    np.testing.assert_allclose(
        ours(figures, adapter="ours"), _their_logits(torch, theirs, "ours", figures), atol=1e-4
    )


def _their_logits(torch, model, name, inputs):
    model.eval()
    model.set_active_adapters(name)
    model.active_head = name
    with torch.no_grad():
        return model(
            *(
                torch.tensor(inputs[part]).long()
                for part in ("input_word_ids", "input_mask", "input_type_ids")
            )
        ).logits.numpy()


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["houlsby", "pfeiffer"])
def test_fusions_of_the_library_adapters(kind, minilm, tmp_path):
    """Members exported, the attention's weights copied: the same logits on the real base."""
    import torch
    from adapters import AutoAdapterModel
    from adapters.composition import Fuse

    figures, rng = _inputs(np.load(FIGURES)), np.random.default_rng(0)
    ours = AdapterModel(minilm)
    theirs = AutoAdapterModel.from_pretrained(minilm.weights_path.rsplit("/", 1)[0])
    names = ["one", "two", "three"]
    for name in names:
        model = ours.add_adapter(name, ["a", "b"], kind, tuning=Tuning(train_layer_norm=False))
        for variable in model.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.05)
        ours.save_adapter(name, tmp_path / name)
        export_adapter(load_adapter(str(tmp_path / name)), str(tmp_path / f"hub_{name}"), minilm)
        theirs.load_adapter(str(tmp_path / f"hub_{name}"), load_as=name, use_safetensors=True)
    fused = ours.add_fusion("fused", names, ["x", "y", "z"])
    for variable in fused.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.03)

    theirs.add_adapter_fusion(Fuse(*names))
    theirs.add_classification_head("fused", num_labels=3, layers=1)
    theirs.set_active_adapters(Fuse(*names))
    parameters, copied = dict(theirs.named_parameters()), set()
    named = {n: torch.tensor(v.numpy()) for n, v in fused.named_variables().items()}
    with torch.no_grad():
        for name, value in named.items():
            if name.startswith("fusion/"):
                found = _their_parameter(name, parameters, ",".join(names))
                parameters[found].copy_(value.T if value.ndim == 2 else value)
                copied.add(found)
    assert copied == {name for name in parameters if "adapter_fusion" in name}
    theirs.eval()
    with torch.no_grad():
        hidden = theirs.bert(
            **{
                "input_ids": torch.tensor(figures["input_word_ids"]).long(),
                "attention_mask": torch.tensor(figures["input_mask"]).long(),
                "token_type_ids": torch.tensor(figures["input_type_ids"]).long(),
            }
        ).last_hidden_state[:, 0]
        pooled = torch.tanh(
            hidden @ named["bert/pooler/dense/kernel"] + named["bert/pooler/dense/bias"]
        )
        expected = (pooled @ named["head/kernel"] + named["head/bias"]).numpy()
    found = ours(figures, "fused").numpy()
    assert np.abs(found - ours(figures, "one").numpy()[:, :1]).max() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-4)


def _their_parameter(name, parameters, fusion):
    """The parameter of the library for a variable such as `fusion/layer_0/attention/key_bias`."""
    _, layer, sublayer, last = name.split("/")
    what, kind = last.split("_")
    number = layer.split("_")[1]
    place = "attention.output." if sublayer == "attention" else "output."
    ending = f"{what}.{'weight' if kind == 'kernel' else 'bias'}"
    (found,) = [
        other
        for other in parameters
        if f"layer.{number}.{place}" in other
        and ("attention.output" in other) == (sublayer == "attention")
        and fusion in other
        and other.endswith(ending)
    ]
    return found
