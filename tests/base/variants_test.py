"""Bases that lack something: a pooler, word pieces for some embeddings, a second token type."""

import json

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.base.loading import new_pooler
from adapter_bert_tf.cli import store
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.store import load_adapter
from tests import runs, support
from tests.refusals import raises_code
from tests.runs import base_flags

POOLER = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")
RUN = ("--task_name=mrpc", "--do_train", "--max_seq_length=16", "--num_train_epochs=2")
RUN += ("--train_batch_size=8",)


def without_pooler(write, folder, **options):
    weights = {n: v for n, v in support.random_weights().items() if n not in POOLER}
    write(folder, weights, **options)
    return str(folder)


MASKED = {
    "google": lambda folder: without_pooler(support.write_google, folder),
    "hugging_face": lambda folder: without_pooler(
        support.write_hugging_face,
        folder,
        config=support.CONFIG | {"hidden_act": "gelu_new"},
        prefix="bert.",
    ),
}


@pytest.mark.parametrize("kind", MASKED)
def test_a_checkpoint_without_a_pooler(kind, tmp_path, tiny_base_folder, caplog):
    """As of `BertForMaskedLM`: the same hidden states, and a new pooler, each time the same."""
    base, whole = load_base(MASKED[kind](tmp_path)), load_base(tiny_base_folder)
    assert "has no pooler" in caplog.text
    assert not base.has_pooler and not base.has_trained_pooler and whole.has_pooler
    inputs = support.batch()
    encoder = base.build_encoder(AdapterConfig(bottleneck_size=4))
    np.testing.assert_allclose(
        encoder(inputs)["sequence_output"],
        whole.build_encoder()(inputs)["sequence_output"],
        atol=1e-4,
    )
    for name, value in new_pooler(base.config).items():
        np.testing.assert_array_equal(encoder.named_variables()[name], value)
    questions = SpanLabeler(base.new_encoder(None))
    assert set(base.assign(questions.named_variables())) == {"head/kernel", "head/bias"}
    # The fingerprint is that of what is stored, whatever the new pooler.
    digest = base.fingerprint()["weights_sha256"]
    assert digest != whole.fingerprint()["weights_sha256"]
    assert digest == load_base(str(tmp_path)).fingerprint()["weights_sha256"]


def test_the_new_pooler_never_changes(tiny_base_folder):
    """Adapters that do not train it rely on its values."""
    kernel, bias = new_pooler(load_base(tiny_base_folder).config).values()
    assert kernel.shape == (16, 16) and not bias.any()
    np.testing.assert_allclose(kernel[0, :2], [0.03528105, 0.00800314], atol=1e-8)


def test_half_a_pooler_is_refused(tmp_path):
    MASKED["hugging_face"](tmp_path)
    path = tmp_path / "model.safetensors"
    bias = {"bert.pooler.dense.bias": np.zeros(16, "f4")}
    safetensors.numpy.save_file(safetensors.numpy.load_file(path) | bias, path)
    with raises_code("mismatch", "bert/pooler/dense/kernel"):
        load_base(str(tmp_path))


def test_classification_trains_the_new_pooler(tmp_path, capfd):
    base, mrpc = MASKED["google"](tmp_path / "base"), runs.write_mrpc(tmp_path / "mrpc", 8)
    out = tmp_path / "out"
    words = [*RUN, *base_flags(base), f"--data_dir={mrpc}", f"--output_dir={out}"]
    assert runs.command(*words) is None
    saved = load_adapter(str(out / "adapter"))
    assert set(POOLER) <= set(saved.weights)
    model = AdapterModel(load_base(base))
    name = model.load_adapter(str(out / "adapter"))
    assert model(support.batch(), adapter=name).shape == (3, 2)


@pytest.mark.parametrize("lower_case", [True, False])
def test_an_adapter_remembers_the_case_that_its_training_was_told(lower_case, tmp_path):
    """Everything that reads it takes the recorded case; a flag or a file must agree."""
    vocabulary = [*support.VOCABULARY[:-1], "The"]
    support.write_google(tmp_path / "base", vocabulary=vocabulary)
    source, mrpc = str(tmp_path / "base"), runs.write_mrpc(tmp_path / "mrpc", 8)
    out, case = tmp_path / "out", f"--do_lower_case={str(lower_case).lower()}"
    words = [*RUN, f"--base_model={source}", f"--data_dir={mrpc}", f"--output_dir={out}"]
    assert runs.command(*words, case) is None
    adapter = str(out / "adapter")
    predictor = Predictor(adapter, base=source)
    assert predictor.model.base.vocabulary.lower_case is lower_case
    applied = ["--task_name=mrpc", "--do_eval", *words[5:], "--max_seq_length=16"]
    assert runs.command(*applied, f"--adapter_dir={adapter}", f"--output_dir={tmp_path}/o") is None
    join([adapter], load_base(source), str(tmp_path / "joined"))
    assert store.main(["verify", adapter, f"--base_model={source}"]) == 0
    other = f"--do_lower_case={str(not lower_case).lower()}"
    message = runs.command(
        *applied, other, f"--adapter_dir={adapter}", f"--output_dir={tmp_path}/p"
    )
    assert "lower_case" in message


def pad(folder, rows):
    """Adds rows to the word embeddings, as many tools do."""
    weights = support.random_weights()
    words = weights["bert/embeddings/word_embeddings"]
    weights["bert/embeddings/word_embeddings"] = np.pad(words, ((0, rows), (0, 0)))
    config = support.CONFIG | {"vocab_size": len(words) + rows}
    support.write_google(folder, weights, config)
    return load_base(str(folder))


@pytest.mark.parametrize(("rows", "warned"), [(2, False), (128, False), (129, True)])
def test_more_embeddings_than_word_pieces(rows, warned, tmp_path, tiny_base_folder, caplog):
    base = pad(tmp_path, rows)
    assert ("never used" in caplog.text) == warned
    assert base.config.vocab_size == len(base.vocabulary) + rows
    exact = load_base(tiny_base_folder)
    assert base.vocabulary.sha256 == exact.vocabulary.sha256
    inputs = support.batch()
    for key in ("sequence_output", "pooled_output"):
        np.testing.assert_array_equal(
            base.build_encoder()(inputs)[key], exact.build_encoder()(inputs)[key]
        )


@pytest.mark.parametrize(("types", "warned"), [(1, True), (2, False)])
def test_pairs_on_a_base_with_one_token_type(types, warned, tmp_path, caplog):
    config = support.CONFIG | {"type_vocab_size": types}
    support.write_google(tmp_path / "base", support.random_weights(config), config)
    mrpc = runs.write_mrpc(tmp_path / "mrpc", 8)
    words = [*RUN, *base_flags(tmp_path / "base"), f"--data_dir={mrpc}", "--dry_run"]
    assert runs.command(*words, f"--output_dir={tmp_path / 'out'}") is None
    assert ("type_vocab_size 1" in caplog.text) == warned


def test_a_length_beyond_the_tokenizers_own(tmp_path, caplog):
    support.write_google(tmp_path / "base")
    config = tmp_path / "base" / "tokenizer_config.json"
    config.write_text(json.dumps({"model_max_length": 12}))
    mrpc = runs.write_mrpc(tmp_path / "mrpc", 8)
    words = [*RUN, *base_flags(tmp_path / "base"), f"--data_dir={mrpc}", "--dry_run"]
    assert runs.command(*words, f"--output_dir={tmp_path / 'out'}") is None
    assert "model_max_length 12" in caplog.text
