"""What analyses see of adapters that answer questions."""

import csv
import json
import sys

import numpy as np
import pytest
import tf_keras

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.analysis.layers import ablation
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, spans
from adapter_bert_tf.cli.analyze import command_for
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from tests import processes
from tests.analysis.looked import LAYERS, SIZES, some_inputs
from tests.runners.squad_test import TINY, write
from tests.runs import squad


def labeler(adapter=None):
    """A span labeler whose variables are all random."""
    tf_keras.utils.set_random_seed(0)
    model = SpanLabeler(new_encoder(SIZES, adapter))
    rng = np.random.default_rng(0)
    for name, variable in sorted(model.named_variables().items()):
        shift = 1.0 if name.endswith("gamma") else 0.0
        variable.assign(rng.normal(shift, 0.2, variable.shape).astype("f4"))
    return model


def test_nothing_and_everything_removed_are_exact():
    model, bare = labeler(PRESETS["houlsby"]), labeler()
    mine = model.named_variables()
    for name, variable in bare.named_variables().items():
        variable.assign(mine[name])
    order = [NOTHING, *spans(LAYERS)]
    found = ablation.span_logits(model, some_inputs(), SUBLAYERS, order).numpy()
    np.testing.assert_array_equal(found[0], model(some_inputs()).numpy())
    everything = found[order.index((0, LAYERS - 1))]
    np.testing.assert_array_equal(everything, bare(some_inputs()).numpy())
    assert np.abs(everything - found[0]).max() > 1e-3


def analyze(name, *arguments):
    """An analysis in a process of its own: it has the flags of run_squad.py."""
    words = [sys.executable, "-m", "adapter_bert_tf.analysis", name, *arguments]
    done = processes.run(words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def two_runs(tiny_base_folder, tmp_path_factory):
    """The folder of two runs, of few steps and of many, and the flags that say what they read."""
    folder = tmp_path_factory.mktemp("squad")
    read = (f"--base_model={tiny_base_folder}", f"--predict_file={write(folder, 'dev')}")
    more = ("--do_train", "--do_eval", f"--train_file={write(folder, 'train')}")
    for name, epochs in (("few", 2), ("many", 40)):
        flags = (f"--num_train_epochs={epochs}", "--learning_rate=1e-2", *TINY)
        status, _, errors = squad(*read, *more, *flags, f"--output_dir={folder}/{name}")
        assert status == 0, errors
    return folder, read


def rows_of(path):
    return list(csv.DictReader(path.open()))


@pytest.mark.slow
def test_the_ablation_of_questions(two_runs, tmp_path):
    folder, read = two_runs
    adapter = f"--adapter_dir={folder}/many/adapter"
    printed = analyze("ablation", *read, adapter, f"--output_dir={tmp_path}")
    assert "f1" in printed and "of any one layer at worst" in printed
    rows = rows_of(tmp_path / "ablation.csv")
    f1 = json.loads((folder / "many" / "run.json").read_text())["eval"]["f1"]
    assert rows[0]["metric"] == "f1" and float(rows[0]["value"]) == pytest.approx(
        f1 / 100, abs=1e-6
    )
    assert min(float(row["change"]) for row in rows) < 0


@pytest.mark.long
def test_the_influence_of_question_adapters(two_runs, tmp_path):
    folder, read = two_runs
    adapter = f"--adapter_dir={folder}/many/adapter"
    analyze("influence", *read, adapter, f"--output_dir={tmp_path}")
    rows = rows_of(tmp_path / "influence.csv")
    assert len(rows) == 4 and all(float(row["relative_change"]) > 0 for row in rows)


@pytest.mark.long
def test_the_comparison_of_question_adapters(two_runs, tmp_path):
    folder, read = two_runs
    asked = f"--adapters=few={folder}/few,many={folder}/many"
    printed = analyze("compare", *read, asked, f"--output_dir={tmp_path}")
    assert "McNemar p" in printed
    for row in rows_of(tmp_path / "compare.csv"):
        f1 = json.loads((folder / row["adapter"] / "run.json").read_text())["eval"]["f1"]
        assert (row["metric"], float(row["value"])) == ("f1", pytest.approx(f1 / 100, abs=1e-6))
        assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
    differing = rows_of(tmp_path / "compare_examples.csv")
    assert differing and list(differing[0]) == ["id", "question", "answers", "few", "many"]
    (pair,) = rows_of(tmp_path / "compare_pairs.csv")
    right = [float(pair[name]) for name in ("only_a_right", "only_b_right")]
    assert sum(right) <= len(differing)


@pytest.mark.slow
def test_sizes_of_question_adapters(two_runs, tmp_path):
    folder, read = two_runs
    more = (f"--train_file={folder}/train.json", "--num_train_epochs=2", "--num_trials=1", *TINY)
    asked = ("--sizes=2", "--tops=1", f"--output_dir={tmp_path}")
    analyze("size", *read, *more, *asked)
    rows = rows_of(tmp_path / "size.csv")
    assert [(row["task"], row["method"], row["metric"]) for row in rows] == [
        ("squad", method, "f1") for method in ("adapters", "top_k", "layer_norm")
    ]
    run = json.loads((tmp_path / "adapters" / "adapter_size=2,seed=0" / "run.json").read_text())
    assert float(rows[0]["value"]) == pytest.approx(run["eval"]["f1"] / 100, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("predict_file: dev.json", Command.SQUAD),
        ("task_name: mrpc", Command.CLASSIFIER),
        ("[", Command.CLASSIFIER),
    ],
)
@pytest.mark.parametrize("words", [["--config={}"], ["--config", "{}"]])
def test_a_file_of_flags_says_what_kind_of_task_it_is(words, text, expected, tmp_path):
    (tmp_path / "a.yaml").write_text(text)
    asked = ["ablation", *(word.format(tmp_path / "a.yaml") for word in words)]
    assert command_for(asked[1:]) is expected
