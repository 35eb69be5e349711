"""The adapters of every span of layers removed, against models that have none there."""

import csv
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.analysis import ablation, options, triangle
from adapter_bert_tf.analysis.removal import NOTHING, SUBLAYERS, spans
from adapter_bert_tf.command.main import run_job
from adapter_bert_tf.heads.classifier import Classifier
from tests.runs import command, train, write_mrpc

if "sublayers" not in flags.FLAGS:
    options.define("ablation")

LAYERS = 3
SIZES = {
    "vocab_size": 30, "hidden_size": 16, "num_layers": LAYERS, "num_attention_heads": 2,
    "inner_dim": 32, "max_sequence_length": 24,
}  # fmt: skip


def model_of(preset="houlsby"):
    """A classifier whose variables are all random: adapters that do something, other LayerNorms."""
    tf.keras.utils.set_random_seed(0)
    model = Classifier(new_encoder(SIZES, PRESETS[preset]), num_labels=3)
    rng = np.random.default_rng(0)
    for name, variable in model.named_variables().items():
        kernel = name.endswith(("kernel", "embeddings"))
        shift = 1.0 if name.endswith("gamma") else 0.0
        scale = 0.3 if kernel else 0.1
        variable.assign(rng.normal(shift, scale, variable.shape).astype("f4"))
    return model


def some_inputs(batch=5, seq=9):
    rng = np.random.default_rng(1)
    mask = (np.arange(seq) < rng.integers(3, seq + 1, (batch, 1))).astype(np.int32)
    ids = rng.integers(1, 30, (batch, seq)).astype(np.int32) * mask
    types = (np.arange(seq) >= 4).astype(np.int32) * mask
    names = ("input_word_ids", "input_mask", "input_type_ids")
    return {name: tf.constant(value) for name, value in zip(names, (ids, mask, types), strict=True)}


def without(model, span, sublayers):
    """The model's logits where the adapters of a span change nothing: their projections are 0."""
    named = model.named_variables()
    places = itertools.product(range(span[0], span[1] + 1), sublayers)
    names = [
        f"adapters/layer_{layer}/{sublayer}/up_{kind}"
        for layer, sublayer in places
        for kind in ("kernel", "bias")
    ]
    before = {name: named[name].numpy() for name in names if name in named}
    for name, value in before.items():
        named[name].assign(np.zeros_like(value))
    logits = model(some_inputs()).numpy()
    for name, value in before.items():
        named[name].assign(value)
    return logits


@pytest.mark.parametrize("preset", ["houlsby", "pfeiffer", "scaled_parallel"])
@pytest.mark.parametrize("sublayers", [SUBLAYERS, SUBLAYERS[:1], SUBLAYERS[1:]])
def test_each_span_is_as_if_its_adapters_were_zero(preset, sublayers):
    model = model_of(preset)
    order = [NOTHING, *spans(LAYERS)]
    found = ablation.span_logits(model, some_inputs(), sublayers, order).numpy()
    assert len(found) == 1 + LAYERS * (LAYERS + 1) // 2
    np.testing.assert_array_equal(found[0], model(some_inputs()).numpy())
    for span, logits in zip(order[1:], found[1:], strict=True):
        np.testing.assert_allclose(logits, without(model, span, sublayers), atol=2e-6)
    if preset == "houlsby":
        assert np.abs(found[1:] - found[0]).max((1, 2)).min() > 1e-3


def test_all_removed_is_the_base_with_its_norms_and_head():
    model = model_of()
    order = [NOTHING, *spans(LAYERS)]
    found = ablation.span_logits(model, some_inputs(), SUBLAYERS, order).numpy()
    bare = Classifier(new_encoder(SIZES), num_labels=3)
    mine = model.named_variables()
    for name, variable in bare.named_variables().items():
        variable.assign(mine[name])
    everything = found[order.index((0, LAYERS - 1))]
    np.testing.assert_array_equal(everything, bare(some_inputs()).numpy())


def test_spans_by_hand():
    assert spans(3) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert len(spans(6)) == 21


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC", rows=32)


@pytest.fixture(scope="module")
def trained(mrpc, tiny_base_folder, tmp_path_factory):
    """The folder of a run with an evaluation; tests must not write to it."""
    out = tmp_path_factory.mktemp("trained") / "out"
    return train(mrpc, tiny_base_folder, out, "--num_train_epochs=8", "--do_eval")


def look(mrpc, base, adapter, *more):
    data = ("--task_name=mrpc", f"--data_dir={mrpc}", f"--base_model={base}", "--do_eval")
    asked = (*data, f"--adapter_dir={adapter}", *more)
    return command(*asked, main=lambda words: run_job("adapter_bert_tf.analysis.ablation", words))


def test_the_command(mrpc, trained, tiny_base_folder, tmp_path, capsys, monkeypatch):
    out = f"--output_dir={tmp_path}/out"
    asked = (out, "--sublayers=both,attention")
    assert look(mrpc, tiny_base_folder, trained / "adapter", *asked) is None
    said = capsys.readouterr().out
    assert "of any one layer at worst" in said and "ablation.svg" in said
    rows = list(csv.DictReader((tmp_path / "out" / "ablation.csv").open()))
    assert [(row["removed"], row["first_layer"], row["last_layer"]) for row in rows] == [
        (kind, *span)
        for kind in ("both", "attention")
        for span in (("0", "0"), ("1", "1"), ("1", "2"), ("2", "2"))
    ]
    whole = json.loads((trained / "run.json").read_text())["eval"]["eval_accuracy"]
    assert float(rows[0]["value"]) == pytest.approx(whole, abs=1e-6) == float(rows[4]["value"])
    change = float(rows[2]["value"]) - whole
    assert float(rows[2]["change"]) == pytest.approx(change, abs=2e-6)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    monkeypatch.setattr(ablation, "scores", None)  # What was found is not sought again.
    assert look(mrpc, tiny_base_folder, trained / "adapter", *asked) is None
    after = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert after == before and after.keys() >= {"ablation.png", "ablation.json"}


REFUSED = {
    "no sublayer": (("--sublayers=both,all",), "is of both, attention, feed_forward"),
    "training": (("--do_train",), "does nothing else. Received: --do_train"),
    "no adapter": (("--adapter_dir={here}/none",), "none"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, mrpc, trained, tiny_base_folder, tmp_path):
    more, said = REFUSED[case]
    more = [word.format(here=tmp_path) for word in more]
    out = f"--output_dir={tmp_path}/out"
    error = look(mrpc, tiny_base_folder, trained / "adapter", out, *more)
    assert error and said in error and not (tmp_path / "out").exists()


def test_what_has_no_adapters(mrpc, tiny_base_folder, tmp_path):
    out = train(mrpc, tiny_base_folder, tmp_path / "ln", "--tuning=layer_norm", "--do_eval")
    error = look(mrpc, tiny_base_folder, out / "adapter", f"--output_dir={tmp_path}/out")
    assert "has no adapters of its own in the layers" in error and "layer_norm" in error


def test_the_grid_and_the_picture():
    rows = [[0, 0, 0.7], [0, 1, 0.5], [1, 1, 0.8]]
    grid = triangle.grid(rows, 0.75)
    np.testing.assert_allclose(grid, [[-5, -25], [np.nan, 5]], atol=1e-9)
    found = {"both": {"metric": "accuracy", "examples": 20, "whole": 0.75, "without": rows}}
    figure = triangle.draw("a $x$ <b>", found)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["-5.0", "-25.0", "5.0"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("last layer removed", "first layer removed")
    assert "n = 20" in figure.get_suptitle() and "points" in figure.axes[-1].get_ylabel()
