"""What analyses see of adapters that tag words."""

import csv
import json

import numpy as np
import pytest
import tf_keras

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.analysis import common
from adapter_bert_tf.analysis.layers import ablation
from adapter_bert_tf.analysis.layers.removal import NOTHING, SUBLAYERS, spans
from adapter_bert_tf.cli.analyze import command_for
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.heads.tagger import Tagger
from adapter_bert_tf.run.execute import new_model
from adapter_bert_tf.runners.tagging.dev_set import TagSet
from adapter_bert_tf.runners.tagging.runner import TaggingRunner
from adapter_bert_tf.tasks import tag_metrics
from adapter_bert_tf.training import inference
from tests import support
from tests.analysis.looked import LAYERS, SIZES, some_inputs
from tests.analysis.questions_test import analyze, rows_of
from tests.runners.tagging import corpus
from tests.runs import base_flags, tagger


def tag_model(adapter=None):
    """A tagger whose variables are all random."""
    tf_keras.utils.set_random_seed(0)
    model = Tagger(new_encoder(SIZES, adapter), 5)
    rng = np.random.default_rng(0)
    for name, variable in sorted(model.named_variables().items()):
        shift = 1.0 if name.endswith("gamma") else 0.0
        variable.assign(rng.normal(shift, 0.2, variable.shape).astype("f4"))
    return model


def test_nothing_and_everything_removed_are_exact():
    model, bare = tag_model(PRESETS["houlsby"]), tag_model()
    mine = model.named_variables()
    for name, variable in bare.named_variables().items():
        variable.assign(mine[name])
    order = [NOTHING, *spans(LAYERS)]
    found = ablation.span_logits(model, some_inputs(), SUBLAYERS, order).numpy()
    np.testing.assert_array_equal(found[0], model(some_inputs()).numpy())
    everything = found[order.index((0, LAYERS - 1))]
    np.testing.assert_array_equal(everything, bare(some_inputs()).numpy())
    assert np.abs(everything - found[0]).max() > 1e-3


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """The folder of two runs, of few steps and of many, and the flags that say what they read."""
    folder = tmp_path_factory.mktemp("tags")
    support.write_google(folder / "base")
    corpus.write(folder / "data")
    read = (*base_flags(folder / "base"), f"--data_dir={folder}/data", *corpus.TINY)
    for name, epochs in (("few", 1), ("many", 12)):
        more = ("--do_train", "--do_eval", f"--num_train_epochs={epochs}")
        status, _, errors = tagger(*read, *more, f"--output_dir={folder}/{name}")
        assert status == 0, errors
    return folder, read


def f1_of(folder):
    return json.loads((folder / "run.json").read_text())["eval"]["eval_f1"]


def settings(words):
    """Settings by name, of flags."""
    pairs = (word.lstrip("-").partition("=")[::2] for word in words)
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


def test_the_dev_set_scores_as_the_run(two_runs, tmp_path):
    folder, read = two_runs
    values = settings(read) | {"learning_rate": 1e-2, "do_eval": True, "output_dir": str(tmp_path)}
    values["adapter_dir"] = str(folder / "many" / "adapter")
    plan = common.plan_analysis(
        TaggingRunner(), RunConfig.from_values(Command.TAGGER, values, values)
    )
    dev = TaggingRunner().dev_set(plan)
    assert isinstance(dev, TagSet) and len(dev) == corpus.SIZES["dev"]
    model = new_model(TaggingRunner(), plan)
    answers = dev.from_json(
        json.loads(
            json.dumps(dev.to_json(dev.answers(list(inference.predict(model, dev.batches)))))
        )
    )
    assert dev.score(answers) == pytest.approx(f1_of(folder / "many"), abs=1e-6)
    gold, rows = plan.only_task.splits["dev"].tags, np.array([0, 3, 3, 5])
    sample = [gold[row] for row in rows], [answers.tags[row] for row in rows]
    scores = tag_metrics.evaluate(*sample, "IOB2")
    for dev.metric in ("f1", "precision", "recall", "strict_f1", "accuracy"):
        assert dev.score(answers, rows) == pytest.approx(scores[dev.metric], abs=1e-6)
    assert dev.correct(dev.from_json([list(tags) for tags in gold])).all()
    place, text, expected = dev.describe_example(1)
    assert place.startswith(f"{folder}/data/dev.conll:") and len(text.split()) >= 4
    assert expected.endswith(")") or expected == "no entity"


@pytest.mark.long
def test_taggers_are_compared(two_runs, tmp_path):
    folder, read = two_runs
    asked = f"--adapters=few={folder}/few,many={folder}/many"
    printed = analyze("compare", *read, asked, f"--output_dir={tmp_path}")
    assert "McNemar p" in printed
    for row in rows_of(tmp_path / "compare.csv"):
        f1 = f1_of(folder / row["adapter"])
        assert (row["metric"], float(row["value"])) == ("f1", pytest.approx(f1, abs=1e-6))
    differing = rows_of(tmp_path / "compare_examples.csv")
    assert list(differing[0]) == ["place", "text", "tags", "few", "many"]


@pytest.mark.long
@pytest.mark.parametrize("analysis", ["ablation", "influence"])
def test_layers_of_taggers(analysis, two_runs, tmp_path):
    folder, read = two_runs
    adapter = f"--adapter_dir={folder}/many/adapter"
    analyze(analysis, *read, adapter, f"--output_dir={tmp_path}")
    rows = rows_of(tmp_path / f"{analysis}.csv")
    if analysis == "ablation":
        assert float(rows[0]["value"]) == pytest.approx(f1_of(folder / "many"), abs=1e-6)
    else:
        assert len(rows) == 4 and all(float(row["relative_change"]) > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("analysis", "option"), [("size", "--sizes=2"), ("init_scale", "--scales=1e-2")]
)
def test_grids_of_taggers(analysis, option, two_runs, tmp_path):
    _, read = two_runs
    more = ("--num_train_epochs=1", "--num_trials=1", option, f"--output_dir={tmp_path}")
    analyze(analysis, *read, *more)
    rows = list(csv.DictReader((tmp_path / f"{analysis}.csv").open()))
    assert {(row["task"], row["metric"]) for row in rows} == {("data", "f1")}


FOLDERS = {  # Files of a folder, further flags, and whose task it is.
    "tagged words": (["train.conll", "dev.conll"], [], Command.TAGGER),
    "those of CoNLL-2003": (["eng.testa"], [], Command.TAGGER),
    "a table": (["train.csv"], [], Command.CLASSIFIER),
    "a named task": (["train.tsv"], ["--task_name=tsv"], Command.CLASSIFIER),
    "questions": (["train.conll"], ["--train_file=train.json", "--doc_stride=3"], Command.SQUAD),
    "nothing": ([], [], Command.CLASSIFIER),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_says_what_kind_of_task_it_is(case, tmp_path):
    names, flags, expected = FOLDERS[case]
    for name in names:
        (tmp_path / name).touch()
    for words in ([f"--data_dir={tmp_path}"], ["--data_dir", str(tmp_path)]):
        assert command_for([*words, "--output_dir=out", *flags]) is expected
