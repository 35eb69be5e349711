"""`run_squad.py`: whole runs on a tiny base, and bad input."""

import json
import re
import shutil
import sys

import pytest
import tensorflow as tf

from adapter_bert_tf.base import load_base
from adapter_bert_tf.config import checks
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.runners.questions import task_data
from adapter_bert_tf.training.tuning import Tuning
from tests import processes, support
from tests.refusals import raises_code
from tests.runs import base_flags, squad

CONTEXTS = (
    "the cat sat on the mat in the house",
    "a dog ran in the rain today",
    "we play in the sun and they walk again",
)
TINY = ["--max_seq_length=20", "--max_query_length=6", "--doc_stride=4", "--train_batch_size=4"]
TINY += ["--noreport"]


def squad_process(*arguments):
    """Runs the command in a process of its own; (exit status, standard output, standard error)."""
    words = [sys.executable, "run_squad.py", *arguments]
    done = processes.run(words)
    return done.returncode, done.stdout, done.stderr


def write(folder, name, answered=True, impossible=False):
    """Two questions a context: about its first word and its second."""
    articles = []
    for i, context in enumerate(CONTEXTS):
        words = context.split(" ")
        qas = []
        for j, start in enumerate((0, len(words[0]) + 1)):
            qa = {"id": f"{name}-{i}-{j}", "question": "who it is" if j else "why"}
            if answered:
                none = impossible and j == 1
                qa["answers"] = [] if none else [{"text": words[j], "answer_start": start}]
                qa["is_impossible"] = none
            qas.append(qa)
        articles.append({"title": str(i), "paragraphs": [{"context": context, "qas": qas}]})
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"version": "x", "data": articles}))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """google-research/bert's README command, with our paths and sizes."""
    folder = tmp_path_factory.mktemp("squad")
    support.write_google(folder / "base")
    train, dev = write(folder, "train"), write(folder, "dev")
    status, printed, errors = squad(
        *base_flags(folder / "base"),
        "--do_train=True",
        f"--train_file={train}",
        "--do_predict=True",
        f"--predict_file={dev}",
        "--train_batch_size=12",
        "--learning_rate=1e-2",
        "--num_train_epochs=60.0",
        *TINY,
        "--report",
        f"--output_dir={folder}/out",
    )
    assert status == 0, errors
    return folder, printed


def test_googles_readme_command_leaves_its_files_and_scores(trained):
    folder, printed = trained
    names = {path.name.split(".out.")[0] for path in (folder / "out").iterdir()}
    assert names == {
        "adapter",
        "checkpoints",
        "eval_results.txt",
        "predictions.json",
        "nbest_predictions.json",
        "eval_details.json",
        "report.html",
        "features",
        "metrics.jsonl",
        "run.json",
        "events",
    }
    results = dict(
        re.findall(r"^(\w+) = (.*)$", (folder / "out" / "eval_results.txt").read_text(), re.M)
    )
    assert set(results) == {"exact_match", "f1", "global_step"}
    assert float(results["f1"]) > 60  # It learns where the answers are.
    assert "***** Total Trainable Parameters" in printed
    record = json.loads((folder / "out" / "run.json").read_text())
    assert record["examples"] == {"train": 6, "dev": 6} and record["peak_memory_mb"] > 100


@pytest.mark.long
def test_the_exported_model_answers_as_the_command_does(trained, tmp_path):
    folder, _ = trained
    status, _, errors = squad(
        *base_flags(folder / "base"),
        "--do_predict",
        "--do_export",
        *TINY,
        f"--predict_file={folder}/dev.json",
        f"--adapter_dir={folder}/out/adapter",
        f"--output_dir={tmp_path}",
    )
    assert status == 0, errors
    articles = json.loads((folder / "dev.json").read_text())["data"]
    asked = [
        (qa["id"], qa["question"], paragraph["context"])
        for article in articles
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ]
    ids, questions_, contexts = zip(*asked, strict=True)
    served = tf.saved_model.load(str(tmp_path / "saved_model")).signatures["serving_default"](
        question=tf.constant(questions_), context=tf.constant(contexts)
    )
    answers = [answer.decode() for answer in served["answer"].numpy()]
    expected = json.loads((tmp_path / "predictions.json").read_text())
    assert dict(zip(ids, answers, strict=True)) == expected


def test_answers_are_slices_of_their_context(trained):
    folder, _ = trained
    predictions = json.loads((folder / "out" / "predictions.json").read_text())
    n_best = json.loads((folder / "out" / "nbest_predictions.json").read_text())
    assert len(predictions) == 6
    for name, text in predictions.items():
        context = CONTEXTS[int(name.split("-")[1])]
        best = n_best[name][0]
        assert best["text"] == text == context[best["start"] : best["end"]]


def test_a_saved_adapter_answers_alike_without_training_data(trained, tmp_path):
    folder, _ = trained
    unlabelled = write(tmp_path, "dev", answered=False)
    status, _, errors = squad(
        *base_flags(folder / "base"),
        "--do_predict",
        f"--predict_file={unlabelled}",
        "--noreport",  # Lengths and stride are the adapter's.
        f"--adapter_dir={folder}/out/adapter",
        f"--output_dir={tmp_path}/out",
        "--question=why",
        f"--context={CONTEXTS[0]}",
    )
    assert status == 0, errors
    assert (tmp_path / "out" / "predictions.json").read_bytes() == (
        folder / "out" / "predictions.json"
    ).read_bytes()
    assert not (tmp_path / "out" / "eval_results.txt").exists()
    config = json.loads((folder / "out" / "adapter" / "adapter_config.json").read_text())
    assert config["task"] == "squad" and config["metric"]["name"] == "f1"


@pytest.mark.long
def test_damaged_windows_are_made_anew_and_all_answered(trained, tmp_path):
    folder, _ = trained
    shutil.copytree(folder / "out" / "features", tmp_path / "features")
    damaged = sorted(tmp_path.rglob("*.tfrecord"))
    for path in damaged:
        path.write_bytes(b"")
    status, _, errors = squad(
        *base_flags(folder / "base"),
        *("--do_predict", "--noreport", f"--predict_file={folder}/dev.json"),
        *(f"--adapter_dir={folder}/out/adapter", f"--output_dir={tmp_path}/out"),
        f"--features_dir={tmp_path}/features",
    )
    assert status == 0 and damaged and errors.count("are damaged") == 1, errors
    found, expected = (path / "out" / "predictions.json" for path in (tmp_path, folder))
    assert found.read_bytes() == expected.read_bytes()


@pytest.mark.long
def test_a_longer_question_than_the_adapter_takes_is_not_assumed(trained, tmp_path):
    """Beside a length that is given, the adapter's own --max_query_length counts."""
    folder, _ = trained
    status, _, errors = squad(
        *base_flags(folder / "base"),
        *("--do_predict", "--max_seq_length=22", f"--adapter_dir={folder}/out/adapter"),
        *("--question=why", f"--context={CONTEXTS[0]}", f"--output_dir={tmp_path}/out"),
    )
    assert status == 0 and "the adapter 20" in errors, errors


def test_one_question(trained, tmp_path):
    folder, _ = trained
    status, printed, errors = squad_process(
        *base_flags(folder / "base"),
        "--do_predict",
        *TINY,
        f"--output_dir={tmp_path}/out",
        f"--adapter_dir={folder}/out/adapter",
        "--question=why",
        f"--context={CONTEXTS[1]}",
    )
    assert status == 0, errors
    found = re.search(
        r"^(.*)\n  score [-\d.]+, probability [\d.]+, characters (\d+) to (\d+) of", printed, re.M
    )
    assert CONTEXTS[1][int(found[2]) : int(found[3])] == found[1]


@pytest.mark.long
@pytest.mark.parametrize("below", [(), ("--stack={}/below", "--adapter=pfeiffer")], ids=len)
def test_a_finished_run_answers_one_question(trained, tmp_path, below):
    """From its adapter, and writes nothing."""
    folder, out = trained[0], tmp_path / "out"
    if below:
        model = AdapterModel(load_base(str(folder / "base")))
        model.add_adapter("below", ["0", "1"], "pfeiffer", tuning=Tuning(train_layer_norm=False))
        model.save_adapter("below", tmp_path / "below")
    words = [*base_flags(folder / "base"), *TINY, "--do_train", "--do_predict"]
    words += [f"--{name}_file={folder}/dev.json" for name in ("train", "predict")]
    words += [*(flag.format(tmp_path) for flag in below), f"--output_dir={out}"]
    assert squad(*words, "--num_train_epochs=4")[0] == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    question = ("--question=why", f"--context={CONTEXTS[1]}")
    status, printed, errors = squad(*words, "--num_train_epochs=4", *question)
    assert status == 0, errors
    assert "holds the results of this very run" in printed
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    apart = ("--do_predict", f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}/apart")
    words = [*base_flags(folder / "base"), *TINY, *(flag.format(tmp_path) for flag in below[:1])]
    _, expected, _ = squad(*words, *apart, *question)
    found = [re.search(r"^.*\n  score [-\d.]+,.*", text, re.M)[0] for text in (printed, expected)]
    assert found[0] == found[1]


@pytest.mark.slow
def test_version_2_and_trials(trained, tmp_path):
    folder, _ = trained
    train, dev = (write(tmp_path, name, impossible=True) for name in ("train", "dev"))
    status, _, errors = squad(
        *base_flags(folder / "base"),
        "--do_train",
        "--do_eval",
        "--do_predict",
        *TINY,
        f"--train_file={train}",
        f"--predict_file={dev}",
        "--version_2_with_negative",
        "--num_trials=2",
        "--num_train_epochs=2",
        "--tuning=layer_norm",
        f"--output_dir={tmp_path}/out",
    )
    assert status == 0, errors
    out = tmp_path / "out"
    results = (out / "eval_results.txt").read_text()
    assert "best_f1_thresh = " in results and "f1_max = " in results
    assert len(json.loads((out / "null_odds.json").read_text())) == 6
    assert len(list((out / "features").iterdir())) == 2  # Shared by the runs.


def test_bad_input_is_one_message_and_leaves_nothing(trained, tmp_path):
    folder, _ = trained
    (tmp_path / "broken.json").write_text('{"data": [')
    status, _, errors = squad(
        *base_flags(folder / "base"),
        "--do_predict",
        *TINY,
        f"--output_dir={tmp_path}/out",
        f"--adapter_dir={folder}/out/adapter",
        f"--predict_file={tmp_path}/broken.json",
    )
    assert status == 1 and "Traceback" not in errors
    assert re.search("error: .*line 1 column", errors), errors
    assert not (tmp_path / "out").exists()


FLAGS = {
    "do_predict": True,
    "predict_file": "DEV",
    "max_seq_length": 20,
    "max_query_length": 6,
    "doc_stride": 4,
    "features_dir": "features",
}
BAD = {
    "half a question": ({"question": "why"}, "missing: belong together"),
    "a question for nobody": (
        {"do_eval": True, "do_predict": False, "question": "why", "context": "so"},
        "missing: --question",
    ),
    "no threshold": ({"null_score_diff_threshold": float("nan")}, "invalid: must be a number"),
    "no training file": ({"do_train": True}, "missing: --train_file"),
    "no file to answer": ({"predict_file": None}, "missing: --do_predict"),
    "nothing to score": (
        {"do_eval": True, "predict_file": None, "question": "why", "context": "so"},
        "missing: --do_eval",
    ),
    "unlabelled": ({"do_eval": True, "predict_file": "UNLABELLED"}, "invalid: --do_eval"),
    "not 1.1": ({"predict_file": "SECOND"}, "invalid: --version_"),
    "training is not 1.1": ({"do_train": True, "train_file": "SECOND"}, "invalid: --version_"),
    "nothing to learn": (
        {"do_train": True, "train_file": "UNLABELLED"},
        "invalid: an answer to learn from",
    ),
    "no room": ({"max_seq_length": 9}, "conflict: room for a context"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, how in (
        ("DEV", {}),
        ("UNLABELLED", {"answered": False}),
        ("SECOND", {"impossible": True}),
    ):
        write(tmp_path, name, **how).rename(name)
    changes, message = BAD[case]
    config = RunConfig.from_values(Command.SQUAD, FLAGS | changes)
    with raises_code(message):
        checks.check_questions(config)
        checks.check_room(config)
        task_data.read(config, vocabulary=None)


def test_a_question_without_its_answer_is_not_learned_and_named(tmp_path, caplog):
    path = write(tmp_path, "train")
    content = json.loads(path.read_text())
    content["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 3
    path.write_text(json.dumps(content))
    values = FLAGS | {"do_train": True, "do_predict": False, "train_file": str(path)}
    config = RunConfig.from_values(Command.SQUAD, values)
    assert task_data.read(config, vocabulary=None).count == 5
    assert "1 of 6 questions are left out of training" in caplog.text
    assert "train-0-0" in caplog.text


@pytest.mark.slow
def test_a_sweep_does_not_mix_scores_of_two_files(trained, tmp_path):
    folder, _ = trained
    arguments = [
        *base_flags(folder / "base"),
        "--do_train",
        "--do_eval",
        *TINY,
        "--num_trials=2",
        f"--train_file={folder}/train.json",
        "--num_train_epochs=4",
        "--tuning=head",
        f"--output_dir={tmp_path}/out",
    ]
    assert squad(*arguments, f"--predict_file={folder}/dev.json")[0] == 0
    other = write(tmp_path, "other")
    status, _, errors = squad(*arguments, f"--predict_file={other}")
    assert status == 1 and "holds another sweep" in errors
