"""The adapters of every span of layers removed, against models that have none there."""

import csv
import itertools
import json

import numpy as np
import pytest

from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.analysis.cache import AnalysisCache
from adapter_bert_tf.analysis.layers import ablation
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, spans
from adapter_bert_tf.heads.classifier import Classifier
from tests import support
from tests.analysis.looked import LAYERS, SIZES, look, model_of, some_inputs
from tests.runs import train


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


@pytest.mark.parametrize(
    "preset", support.seldom(["houlsby", "pfeiffer", "scaled_parallel"], ("houlsby", "pfeiffer"))
)
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


@pytest.mark.parametrize("preset", ["houlsby", "lora", "ia3", "prefix", "compacter", "mam"])
def test_all_removed_is_the_base_with_its_norms_and_head(preset):
    model = model_of(preset)
    order = [NOTHING, *spans(LAYERS)]
    found = ablation.span_logits(model, some_inputs(), SUBLAYERS, order).numpy()
    bare = Classifier(new_encoder(SIZES), num_labels=3)
    mine = model.named_variables()
    for name, variable in bare.named_variables().items():
        variable.assign(mine[name])
    everything = found[order.index((0, LAYERS - 1))]
    # Queries of [CLS] alone are computed in another order where nothing changes them.
    np.testing.assert_allclose(everything, bare(some_inputs()).numpy(), atol=1e-5)
    np.testing.assert_array_equal(found[0], model(some_inputs()).numpy())
    assert np.abs(everything - found[0]).max() > 1e-4


def test_spans_by_hand():
    assert spans(3) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert len(spans(6)) == 21


@pytest.mark.long
def test_the_command(looked_at, tmp_path, capsys, monkeypatch):
    out = f"--output_dir={tmp_path}/out"
    asked = (f"--adapter_dir={looked_at.run}/adapter", out, "--sublayers=both,attention")
    assert look("ablation", looked_at, *asked) is None
    said = capsys.readouterr().out
    assert "of any one layer at worst" in said and "ablation.svg" in said
    rows = list(csv.DictReader((tmp_path / "out" / "ablation.csv").open()))
    assert [(row["removed"], row["first_layer"], row["last_layer"]) for row in rows] == [
        (kind, *span)
        for kind in ("both", "attention")
        for span in (("0", "0"), ("1", "1"), ("1", "2"), ("2", "2"))
    ]
    whole = json.loads((looked_at.run / "run.json").read_text())["eval"]["eval_accuracy"]
    assert float(rows[0]["value"]) == pytest.approx(whole, abs=1e-6) == float(rows[4]["value"])
    change = float(rows[2]["value"]) - whole
    assert float(rows[2]["change"]) == pytest.approx(change, abs=2e-6)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    monkeypatch.setattr(ablation, "compute_scores", None)  # What was found is not sought again.
    assert look("ablation", looked_at, *asked) is None
    after = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert after == before and after.keys() >= {"ablation.png", "ablation.json"}


@pytest.mark.parametrize(
    "setting, column, found",
    [
        ("--max_seq_length=6", "value", None),
        pytest.param("--metric=f1", "metric", "f1", marks=pytest.mark.slow),
    ],
)
@pytest.mark.long
def test_other_settings_are_other_results(setting, column, found, looked_at, tmp_path, capsys):
    asked = (f"--adapter_dir={looked_at.run}/adapter", "--sublayers=both")
    rows = []
    for folder, *more in (("a",), ("a", setting), ("b", setting)):
        assert (
            look("ablation", looked_at, *asked, f"--output_dir={tmp_path}/{folder}", *more) is None
        )
        rows.append(list(csv.DictReader((tmp_path / folder / "ablation.csv").open())))
    assert rows[1] == rows[2] != rows[0]
    assert found is None or rows[1][0][column] == found
    assert f"Replaced: {tmp_path}/a/ablation.json, of other" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", support.seldom(["influence.csv", "influence.png", "influence.svg"], ("influence.csv",))
)
def test_a_table_or_picture_of_somebody_else_stays(name, looked_at, tmp_path):
    asked = (f"--adapter_dir={looked_at.run}/adapter", f"--output_dir={tmp_path}/out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    assert "no analysis wrote it" in look("influence", looked_at, *asked)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    assert (tmp_path / "out" / name).read_text() == "mine"
    (tmp_path / "out" / name).unlink()
    assert look("influence", looked_at, *asked) is None
    (tmp_path / "out" / "influence.csv").write_text("changed,by,hand")
    assert look("influence", looked_at, *asked) is None  # Its pictures say whose it is.


def test_what_was_kept_of_others(tmp_path, capsys):
    kept, folder = tmp_path / "ablation.json", str(tmp_path)
    found = {"metric": "accuracy", "examples": 1, "whole": 0.5, "without": []}
    AnalysisCache(folder, "ablation", "one").add("both", found)
    assert AnalysisCache(folder, "ablation", "one").results == {"both": found}
    other = AnalysisCache(folder, "ablation", "two")
    assert other.results == {} and not capsys.readouterr().out
    other.add("attention", found)
    assert f"Replaced: {kept}" in capsys.readouterr().out
    assert AnalysisCache(folder, "ablation", "two").results == {"attention": found}


@pytest.mark.parametrize("content", ['{"mine": 1}', "[]", "notes", '{"found": [], "identity": 1}'])
def test_a_file_of_somebody_else_stays(content, looked_at, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ablation.json").write_text(content)
    asked = (f"--adapter_dir={looked_at.run}/adapter", f"--output_dir={tmp_path}/out")
    assert "no analysis wrote it" in look("ablation", looked_at, *asked)
    assert (tmp_path / "out" / "ablation.json").read_text() == content


REFUSED = {
    "no sublayer": (("--sublayers=both,all",), "is of both, attention, feed_forward"),
    "several tasks": (("--task_name=cola,mrpc",), "one task. Received: --task_name=cola,mrpc"),
    "training": (("--do_train",), "does nothing else. Received: --do_train"),
    "no adapter": (("--adapter_dir={here}/none",), "none"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, looked_at, tmp_path):
    more, said = REFUSED[case]
    more = [word.format(here=tmp_path) for word in more]
    asked = (f"--adapter_dir={looked_at.run}/adapter", f"--output_dir={tmp_path}/out")
    error = look("ablation", looked_at, *asked, *more)
    assert error and said in error and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "analysis, said",
    [
        ("ablation", "has no adapters of"),
        pytest.param("influence", "no", marks=pytest.mark.slow),
    ],
)
def test_what_has_no_adapters(analysis, said, looked_at, tmp_path):
    out = train(looked_at.data, looked_at.base, tmp_path / "ln", "--tuning=layer_norm")
    asked = (f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}/out")
    error = look(analysis, looked_at, *asked)
    assert said in error and "layer_norm" in error


def test_the_grid_and_the_picture():
    rows = [[0, 0, 0.7], [0, 1, 0.5], [1, 1, 0.8]]
    grid = ablation.change_matrix(rows, 0.75)
    np.testing.assert_allclose(grid, [[-5, -25], [np.nan, 5]], atol=1e-9)
    found = {"both": {"metric": "accuracy", "examples": 20, "whole": 0.75, "without": rows}}
    figure = ablation.draw("a $x$ <b>", found)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["-5.0", "-25.0", "+5.0"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("last layer removed", "first layer removed")
    assert axes.images[0].get_clim() == pytest.approx((-25, 5))  # A gain is not drawn as a zero.
    assert "n = 20" in figure.get_suptitle() and "points" in figure.axes[-1].get_ylabel()
