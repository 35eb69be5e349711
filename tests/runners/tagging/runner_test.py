"""`run_tagger.py`: whole runs on a made-up corpus and a tiny base."""

import csv
import functools
import json
import sys

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.cli.predict import main as predict_command
from adapter_bert_tf.data.tagging.schemes import from_iob2
from adapter_bert_tf.runners.tagging.runner import TaggingRunner
from tests import processes, support
from tests.runners.tagging import corpus
from tests.runs import base_flags, tagger

SHORT = ("--num_train_epochs=1", "--do_train", "--do_eval")
SCORES = {f"eval_{name}" for name in ("f1", "precision", "recall", "strict_f1", "accuracy")}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function from an output folder's name and flags to the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("tagging")
    support.write_google(folder / "base")
    corpus.write(folder / "data")

    def start(name, *flags):
        data = () if any("file=" in flag for flag in flags) else (f"--data_dir={folder}/data",)
        known = {flag.partition("=")[0] for flag in flags}
        usual = [flag for flag in (*data, *corpus.TINY) if flag.partition("=")[0] not in known]
        words = (*base_flags(folder / "base"), *usual, *flags)
        status, printed, errors = tagger(*words, f"--output_dir={folder}/{name}")
        assert status == 0, errors
        return folder / name, printed

    start.folder = folder
    return start


@pytest.fixture(scope="module")
def trained(run):
    actions = ("--do_train", "--do_eval", "--do_predict", "--num_train_epochs=20", "--do_export")
    return run("trained", *actions, "--report")


def results(folder):
    return json.loads((folder / "run.json").read_text())["eval"]


def test_it_learns_and_says_what_it_read(trained):
    folder, printed = trained
    scores = results(folder)
    assert scores.keys() == SCORES and scores["eval_f1"] > 0.8
    line = next(line for line in printed.splitlines() if line.startswith("Tags: "))
    assert "IOB2, 2 types (LOC, PER)" in line and "train: 48 sentences" in line
    assert "test_f1 = " in (folder / "test_metrics.txt").read_text()
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    assert (config["head"], config["task"], config["name"]) == ("tags", "tagging", "data")
    assert config["labels"] == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert config["inputs"]["scheme"] == "IOB2" and config["metric"]["name"] == "f1"
    assert (folder / "report.html").exists()


def test_predictions_keep_all_lines_and_have_one_more_column(trained, run):
    folder, _ = trained
    given = (run.folder / "data" / "test.conll").read_text().splitlines()
    written = (folder / "test_predictions.conll").read_text().splitlines()
    assert len(written) == len(given) and written[:2] == ["-DOCSTART-", ""]
    for before, after in zip(given, written, strict=True):
        is_word = "\t" in before
        assert after.rpartition("\t")[0] == before if is_word else after == before
    rows = [json.loads(line) for line in (folder / "test_entities.jsonl").open()]
    assert [row["words"] for row in rows] == [words for words, _ in corpus.sentences(6, 2)]
    for row in rows:
        for entity in row["entities"]:
            words = row["words"][entity["start"] : entity["end"]]
            assert entity["text"] == " ".join(words) and 0 < entity["probability"] <= 1


def test_the_same_command_again_finds_itself_done(trained, run):
    actions = ("--do_train", "--do_eval", "--do_predict", "--num_train_epochs=20", "--do_export")
    assert "holds the results of this very run" in run("trained", *actions)[1]


def test_a_saved_adapter_is_applied_to_objects_of_another_scheme(trained, run):
    data = corpus.write(run.folder / "bioes", "jsonl", functools.partial(from_iob2, scheme="BIOES"))
    files = (f"--dev_file={data}/dev.jsonl", f"--test_file={data}/test.jsonl")
    adapter = f"--adapter_dir={trained[0]}/adapter"
    folder, _ = run("applied", "--do_eval", "--do_predict", adapter, *files)
    assert results(folder) == results(trained[0])
    rows = [json.loads(line) for line in (folder / "test_predictions.jsonl").open()]
    assert rows[0].keys() == {"id", "tokens", "tags", "predicted_tags"}
    tags = {tag[0] for row in rows for tag in row["predicted_tags"]}
    assert "S" in tags and "E" in tags
    details = json.loads((folder / "eval_details.json").read_text())
    assert details["kind"] == "tags" and "by_seen" not in details
    same = json.loads((trained[0] / "eval_details.json").read_text())
    assert same["outcomes"] == details["outcomes"] and same["by_seen"]


def test_files_without_tags_are_predicted_and_not_scored(trained, run, tmp_path):
    path = tmp_path / "test.txt"
    path.write_text("cat\nran\n\nbig\nhouse\n")
    folder, _ = run(
        "no_tags", "--do_predict", f"--adapter_dir={trained[0]}/adapter", f"--test_file={path}"
    )
    lines = (folder / "test_predictions.conll").read_text().splitlines()
    assert [line.split(" ")[0] for line in lines] == ["cat", "ran", "", "big", "house"]
    assert not (folder / "test_metrics.txt").exists()


def test_the_saved_model_answers_as_the_predictor(trained, run):
    folder, _ = trained
    texts = ["the cat ran in a big house", "a dog", ""]
    expected = abt.Predictor(folder / "adapter", base=str(run.folder / "base"))(texts)
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    served = loaded.answer(tf.constant(texts))
    found = [[text.decode() for text in row] for row in served["text"].to_list()]
    assert found == [[one["text"] for one in answer["entities"]] for answer in expected]


@pytest.fixture
def predict(trained, run, tmp_path, capsys):
    """A function from flags of `adapter-bert predict` to its status, output file and messages."""

    def start(output, *flags):
        words = (f"--adapter_dir={trained[0]}/adapter", f"--base_model={run.folder}/base", *flags)
        written = [f"--output={tmp_path / output}"] if output else []
        status = predict_command([*words, *written])
        printed = capsys.readouterr()
        return status, tmp_path / output, printed.out + printed.err

    return start


def test_predict_writes_what_the_run_wrote(trained, run, predict):
    test = f"--predict_file={run.folder}/data/test.conll"
    status, path, printed = predict("a.conll", test, "--batch_size=3")
    assert status == 0 and "6 sentences: " in printed
    assert path.read_text() == (trained[0] / "test_predictions.conll").read_text()
    tagger = abt.Predictor(trained[0] / "adapter", base=str(run.folder / "base"))
    data = run.folder / "data" / "test.conll"
    assert tagger.predict_file(data, path, overwrite=True, separator="\t") == 6
    assert path.read_text() == (trained[0] / "test_predictions.conll").read_text()
    _, path, _ = predict("a.jsonl", test)
    rows = [json.loads(line) for line in path.open()]
    expected = [json.loads(line) for line in (trained[0] / "test_entities.jsonl").open()]
    assert [[e["text"] for e in row["entities"]] for row in rows] == [
        [e["text"] for e in row["entities"]] for row in expected
    ]


def test_predict_takes_raw_texts(predict, tmp_path):
    (tmp_path / "raw.tsv").write_text("id\ttext\n1\ta cat, a big house\n")
    status, path, _ = predict("out.jsonl", f"--predict_file={tmp_path}/raw.tsv")
    (row,) = map(json.loads, path.open())
    assert status == 0 and row["words"] == ["a", "cat", ",", "a", "big", "house"]
    _, _, printed = predict("", f"--text_a={row['text']}")
    answer = json.loads(printed.splitlines()[-1])
    assert answer["entities"] == row["entities"] and answer["entities"]
    for entity in answer["entities"]:
        assert row["text"][entity["start"] : entity["end"]] == entity["text"]


PREDICT_REFUSES = {
    "a table's option": ("a.conll", "b.conll", "--quoted", "--quoted has no effect"),
    "words' option for a table": ("a.csv", "b.csv", "--comments", "--comments has no effect"),
    "another extension": ("a.conll", "b.csv", "--overwrite", ".conll"),
    "a missing file": ("c.conll", "b.conll", "--overwrite", "c.conll"),
    "a column out of range": ("a.conll", "b.conll", "--word_column=4", "line 1"),
}


@pytest.mark.parametrize("case", PREDICT_REFUSES)
def test_predict_refuses(case, predict, tmp_path):
    name, output, flag, expected = PREDICT_REFUSES[case]
    for file in ("a.conll", "a.csv"):
        (tmp_path / file).write_text("text\tO\n" if file == "a.csv" else "cat\tO\n")
    status, path, printed = predict(output, f"--predict_file={tmp_path}/{name}", flag)
    assert status == 1 and expected in printed and not path.exists()


@pytest.mark.long
def test_trials_predict_a_file_without_tags_as_a_run_does(run):
    """The training data decides the scheme, and so the metric."""
    data = corpus.write(run.folder / "words", convert=lambda tags: [t[-3:] for t in tags])
    (data / "test.conll").write_text("cat\nran\n\nbig\nhouse\n")
    words = (*SHORT, "--do_predict", "--metric=macro_f1", f"--data_dir={data}")
    folder, _ = run("words_trials", *words, "--num_trials=2")
    assert len((folder / "test_predictions.conll").read_text().split()) == 8
    (data / "test.conll").write_text("cat\tANIMAL\n")
    run_flags = (*base_flags(run.folder / "base"), *corpus.TINY, *words, "--num_trials=2")
    status, _, errors = tagger(*run_flags, f"--output_dir={run.folder}/other_tags")
    assert status == 1 and "ANIMAL" in errors and not (run.folder / "other_tags").exists()


def test_plain_tags_have_accuracy(run):
    data = corpus.write(run.folder / "plain", convert=lambda tags: [t[-3:] for t in tags])
    files = [f"--{split}_file={data}/{split}.conll" for split in ("train", "dev", "test")]
    folder, printed = run("plain_run", *SHORT, "--do_predict", *files)
    assert results(folder).keys() == {"eval_accuracy", "eval_macro_f1"}
    assert "Tags: plain, 3 tags (LOC, O, PER)" in printed
    assert not (folder / "test_entities.jsonl").exists()
    predicted = (folder / "test_predictions.conll").read_text().splitlines()
    assert {line.split("\t")[2] for line in predicted if "\t" in line} <= {"LOC", "O", "PER"}


@pytest.mark.long
@pytest.mark.parametrize("tuning", ["full", "top_k", "layer_norm", "head", "fusion"])
def test_every_tuning(trained, run, tuning):
    more = (f"--fuse={trained[0]}/adapter,b={trained[0]}/adapter",) if tuning == "fusion" else ()
    folder, _ = run(tuning, *SHORT, f"--tuning={tuning}", *more)
    weights = safetensors.numpy.load_file(folder / "adapter" / "adapter.safetensors")
    assert weights["head/kernel"].shape[1] == 5
    assert not any("pooler" in name for name in weights) and results(folder).keys() == SCORES


@pytest.mark.long
@pytest.mark.parametrize("preset", ["pfeiffer", "parallel"])
def test_presets_and_the_start_from_an_adapter_with_the_best_weights(trained, run, preset):
    first, _ = run(f"{preset}_start", *SHORT, f"--adapter={preset}")
    best = ("--keep=best", "--eval_every_steps=2", "--max_eval_examples=6", "--do_predict")
    folder, printed = run(f"{preset}_best", *SHORT, f"--init_from={first}/adapter", *best)
    assert "adapters, LayerNorms, head" in printed and "the best on dev" in printed
    assert results(folder).keys() == SCORES


@pytest.mark.long
def test_several_seeds(run):
    folder, _ = run("seeds", *SHORT, "--num_trials=2", "--metric=recall", "--stride=2")
    with (folder / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows] == ["0", "1"] and "eval_recall" in rows[0]


@pytest.mark.long
def test_an_interrupted_run_ends_with_the_same_bytes(run, monkeypatch):
    more = (*SHORT, "--save_checkpoints_steps=2")
    whole, _ = run("whole", *more)
    train_batches = TaggingRunner.train_batches

    def ends_early(self, plan, start, share):
        return train_batches(self, plan, start, share).take(3 * (start == 0) or -1)

    monkeypatch.setattr(TaggingRunner, "train_batches", ends_early)
    flags = (*base_flags(run.folder / "base"), *corpus.TINY, *more)
    status, _, errors = tagger(
        *flags, f"--data_dir={run.folder}/data", f"--output_dir={run.folder}/stopped"
    )
    assert status == 1 and "at step 3" in errors
    resumed, _ = run("stopped", *more)
    name = "adapter/adapter.safetensors"
    assert (resumed / name).read_bytes() == (whole / name).read_bytes()
    assert json.loads((resumed / "run.json").read_text())["resumed_from_step"] > 0


@pytest.mark.long
def test_two_replicas_train_what_one_trains(run):
    flags = (*base_flags(run.folder / "base"), f"--data_dir={run.folder}/data", *corpus.TINY)
    flags = [*flags, *SHORT, "--dropout=0", "--distribution=mirrored", "--noreport"]
    weights = []
    for count in (1, 2):
        out = f"{run.folder}/replicas_{count}"
        words = ["tests/launch.py", count, "run_tagger.py", *flags, f"--output_dir={out}"]
        done = processes.run([sys.executable, *map(str, words)])
        assert done.returncode == 0, done.stderr
        weights.append(safetensors.numpy.load_file(f"{out}/adapter/adapter.safetensors"))
    for name, value in weights[0].items():
        np.testing.assert_allclose(weights[1][name], value, atol=1e-5, err_msg=name)
