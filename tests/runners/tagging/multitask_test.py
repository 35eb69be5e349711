"""`run_tagger.py` with several tasks: whole runs on made-up corpora and a tiny base."""

import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.cli.store import main as store
from adapter_bert_tf.heads.serving_tags import SPLITS
from tests import support
from tests.runners.tagging import corpus
from tests.runs import base_flags, command, tagger

TASKS = {  # Name: what its tags are, number of sentences.
    "names": (lambda tags: tags, corpus.SIZES),
    "people": (
        lambda tags: [tag if tag.endswith("PER") else "O" for tag in tags],
        {"train": 24, "dev": 8, "test": 5},
    ),
    "speech": (
        lambda tags: ["X" if tag == "O" else "NOUN" for tag in tags],
        {"train": 30, "dev": 8, "test": 5},
    ),
}
METHODS = {
    "multitask_adapters": ("--adapter_size=4",),
    "per_task_adapters": ("--adapter_size=4",),
    "hyperformer++": ("--adapter_size=4", "--task_embedding_size=8"),
}
TEXTS = ["the cat ran in a big house", "a dog ran", "", "big mat cat " * 9, "rain \ufe0f sun"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function from an output folder's name and flags to the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("taggers")
    support.write_google(folder / "base")
    for name, (convert, sizes) in TASKS.items():
        corpus.write(folder / "data" / name, convert=convert, sizes=sizes)

    def start(name, *flags, error=False):
        usual = (f"--data_dir={folder}/data", "--task_name=names,people,speech", *corpus.TINY)
        known = {flag.partition("=")[0] for flag in flags}
        usual = [flag for flag in usual if flag.partition("=")[0] not in known]
        given = [flag for flag in flags if not flag.endswith("=")]
        words = (*base_flags(folder / "base"), *usual, *given)
        status, printed, errors = tagger(*words, f"--output_dir={folder}/{name}")
        assert bool(status) == error, errors
        return folder / name, errors if error else printed

    start.folder = folder
    return start


@pytest.fixture(scope="module", params=support.seldom(METHODS, ("per_task_adapters",)))
def trained(request, run):
    actions = ("--do_train", "--do_eval", "--do_predict", "--do_export", "--num_train_epochs=15")
    method = (f"--tuning={request.param}", *METHODS[request.param])
    return run(f"trained {request.param}", *actions, *method, "--report")


def results(folder):
    return json.loads((folder / "run.json").read_text())["eval"]


def test_each_task_learns_and_there_is_an_average(trained):
    folder, printed = trained
    found = results(folder)
    firsts = ("eval_names_f1", "eval_people_f1", "eval_speech_accuracy")
    assert set(firsts) < set(found)
    assert found["eval_average"] == pytest.approx(np.mean([found[name] for name in firsts]))
    assert found["eval_average"] > 0.6
    assert "people: Tags: IOB2, 1 type (PER); train: 24 sentences" in printed
    assert "test_speech_accuracy = " in (folder / "test_metrics.txt").read_text()
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    assert [task["name"] for task in config["tasks"]] == list(TASKS)
    assert config["tasks"][2]["labels"] == ["NOUN", "X"]
    assert config["tasks"][2]["inputs"]["scheme"] == "plain"
    record = json.loads((folder / "run.json").read_text())
    assert record["tasks"]["people"]["examples"] == TASKS["people"][1]


def test_each_task_has_its_files_and_its_part_of_the_report(trained, run):
    folder, _ = trained
    for name in TASKS:
        given = (run.folder / "data" / name / "test.conll").read_text().splitlines()
        written = (folder / f"{name}_test_predictions.conll").read_text().splitlines()
        assert [line.rpartition("\t")[0] for line in written if "\t" in line] == [
            line for line in given if "\t" in line
        ]
        assert json.loads((folder / f"{name}_eval_details.json").read_text())["kind"] == "tags"
        assert name in (folder / "report.html").read_text()
    assert (folder / "people_test_entities.jsonl").exists()
    assert not (folder / "speech_test_entities.jsonl").exists()


def test_the_adapter_of_a_task_scores_alone_as_among_the_others(trained, run):
    folder, _ = trained
    together = results(folder)
    for name in TASKS:
        alone, _ = run(
            f"alone {folder.name} {name}",
            "--do_eval",
            "--task_name=",
            f"--data_dir={run.folder}/data/{name}",
            f"--adapter_dir={folder}/adapter/tasks/{name}",
        )
        for metric, value in results(alone).items():
            among = metric.replace("eval_", f"eval_{name}_")
            assert together[among] == pytest.approx(value, abs=1e-6), metric


def test_the_whole_is_applied_to_some_of_its_tasks(trained, run):
    folder, _ = trained
    whole = f"--adapter_dir={folder}/adapter"
    again, _ = run(f"again {folder.name}", "--do_eval", whole, "--task_name=")
    assert results(again) == pytest.approx(results(folder), abs=1e-6)
    some, _ = run(f"some {folder.name}", "--do_eval", whole, "--task_name=speech,people")
    for name, value in results(some).items():
        if name != "eval_average":
            assert value == pytest.approx(results(folder)[name], abs=1e-6)
    assert not any("names" in name for name in results(some))


def test_python_and_a_fresh_process_answer_alike(trained, run):
    """A `Predictor` of the tasks' adapters by name, one task a row in one batch."""
    folder, _ = trained
    adapters = {name: str(folder / "adapter" / "tasks" / name) for name in TASKS}
    predictor = abt.Predictor(adapters, base=str(run.folder / "base"))
    rows = [(text, name) for text in TEXTS for name in TASKS]
    texts, names = zip(*rows, strict=True)
    mixed = predictor(list(texts), adapter=list(names))
    for name in TASKS:
        own = [answer for answer, other in zip(mixed, names, strict=True) if other == name]
        alone = predictor(TEXTS, adapter=name)
        assert [answer["tags"] for answer in own] == [answer["tags"] for answer in alone]
    code = (
        "import json, sys, adapter_bert_tf as abt\n"
        "adapters, base, texts, names = map(json.loads, sys.argv[1:])\n"
        "answers = abt.Predictor(adapters, base=base)(texts, adapter=names)\n"
        "print(json.dumps([answer['tags'] for answer in answers]))\n"
    )
    words = map(json.dumps, (adapters, str(run.folder / "base"), texts, names))
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [answer["tags"] for answer in mixed]
    assert store(["verify", str(folder / "adapter")]) == 0


def served_entities(answer, row):
    return [
        (text.decode(), kind.decode(), start, end)
        for text, kind, start, end in zip(
            *(answer[name][row].numpy() for name in ("text", "type", "start", "end")), strict=True
        )
    ]


def test_the_saved_model_answers_as_the_predictor(trained, run):
    """By the signature of each task, and by `tasks`, where words of plain tags are entities."""
    folder, _ = trained
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    assert set(loaded.signatures) == {*TASKS, "tasks"} == {*loaded.answers}
    adapters = {name: folder / "adapter" / "tasks" / name for name in TASKS}
    predictor = abt.Predictor(adapters, base=str(run.folder / "base"))
    rows = [(text, name) for text in TEXTS for name in TASKS]
    texts, names = zip(*rows, strict=True)
    mixed = loaded.answers["tasks"](tf.constant(names), tf.constant(texts))
    assert mixed["text"].row_splits.shape[0] == len(rows) + 1
    assert np.isfinite(mixed["score"].flat_values).all()
    for row, answer in enumerate(predictor(list(texts), adapter=list(names))):
        found = served_entities(mixed, row)
        if names[row] == "speech":
            expected = list(zip(answer["words"], answer["tags"], strict=True))
            assert [pair[:2] for pair in found] == expected
            shares = [share or 0 for share in answer["probabilities"]]
        else:
            keys = ("text", "type", "start", "end")
            assert found == [tuple(one[k] for k in keys) for one in answer["entities"]]
            shares = [one["probability"] for one in answer["entities"]]
        np.testing.assert_allclose(mixed["score"][row], shares, atol=1e-4)
    own = loaded.answers["names"](tf.constant(TEXTS))
    for row, text in enumerate(TEXTS):
        assert served_entities(own, row) == served_entities(mixed, rows.index((text, "names")))
    nothing = tf.constant([], tf.string)
    answer = loaded.signatures["tasks"](task=nothing, text=nothing)
    assert answer[SPLITS].numpy().tolist() == [0]


@pytest.mark.long
def test_training_goes_on_from_the_whole_and_from_one_task(trained, run):
    folder, _ = trained
    short = ("--do_train", "--num_train_epochs=0.2", "--learning_rate=1e-12")
    whole, _ = run(f"on {folder.name}", *short, f"--init_from={folder}/adapter")
    weights = [
        safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")
        for out in (folder, whole)
    ]
    assert weights[0].keys() == weights[1].keys()
    for name in weights[0]:
        np.testing.assert_allclose(weights[1][name], weights[0][name], atol=1e-4, err_msg=name)
    one = ("--task_name=", f"--data_dir={run.folder}/data/people", "--do_train")
    _, printed = run(
        f"one {folder.name}",
        *one,
        "--num_train_epochs=1",
        f"--init_from={folder}/adapter",
        "--init_task=people",
    )
    assert "of 'people': " in printed and "head." in printed


@pytest.mark.long
def test_adapters_that_were_trained_together_are_fused(trained, run):
    folder, _ = trained
    members = ",".join(f"{folder}/adapter/tasks/{name}" for name in TASKS)
    fused, _ = run(
        f"fused {folder.name}",
        "--task_name=",
        f"--data_dir={run.folder}/data/people",
        "--do_train",
        "--do_eval",
        "--num_train_epochs=1",
        "--tuning=fusion",
        f"--fuse={members}",
    )
    assert "eval_f1" in results(fused)


def test_tasks_in_a_file_may_share_data_and_have_their_own_column(run):
    """Two columns of one file; the settings are in the adapter and need no file later."""
    folder = run.folder / "columns"
    folder.mkdir()
    for seed, (split, count) in enumerate({"train": 24, "dev": 8}.items()):
        lines = []
        for words, tags in corpus.sentences(count, seed):
            parts = TASKS["speech"][0](tags)
            lines += [" ".join(row) for row in zip(words, parts, tags, strict=True)] + [""]
        (folder / f"{split}.conll").write_text("\n".join(lines))
    tasks = run.folder / "tasks.yaml"
    where = f"data_dir: {folder}"
    tasks.write_text(
        f"names: {{{where}, decoding: argmax}}\nspeech: {{{where}, tag_column: 1, stride: 2}}\n"
    )
    flags = ("--do_train", "--do_eval", "--num_train_epochs=1", "--tuning=multitask_adapters")
    out, _ = run("columns out", *flags, f"--task_name={tasks}", "--data_dir=")
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    names, speech = config["tasks"]
    assert names["inputs"]["decoding"] == "argmax" and names["inputs"]["stride"] == 3
    assert (speech["inputs"]["scheme"], speech["inputs"]["stride"]) == ("plain", 2)
    again = ("--do_eval", f"--adapter_dir={out}/adapter", "--data_dir=")
    files = f"names: {{{where}}}\nspeech: {{{where}, tag_column: 1}}\n"
    tasks.write_text(files)
    evaluated, _ = run("columns again", *again, f"--task_name={tasks}", "--stride=3")
    assert results(evaluated) == pytest.approx(results(out), abs=1e-6)


REFUSED = {  # name: (flags, what the message names)
    "one task alone": (["--task_name=names", "--tuning=adapters"], "Leave it out"),
    "a method for one": (["--tuning=adapters"], "multitask_adapters"),
    "no tasks": (["--task_name=", "--tuning=per_task_adapters"], "--task_name"),
    "no folder": (["--task_name=names,nope", "--tuning=per_task_adapters"], "'nope'"),
    "a task twice": (["--task_name=names,Names", "--tuning=per_task_adapters"], "['names']"),
    "a name for all": (["--adapter_name=x", "--tuning=per_task_adapters"], "--adapter_name"),
    "a missing column": (["--tag_column=7", "--tuning=per_task_adapters"], "names"),
    "results of one name": (
        ["--task_name=a={data}/names,a_strict={data}/people", "--tuning=per_task_adapters"],
        "eval_a_strict_f1",
    ),
    "columns of a table": (["--task_name={data}/t.yaml", "--tuning=pals"], "text_a_column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_training(case, run):
    flags, message = REFUSED[case]
    data = run.folder / "data"
    (data / "t.yaml").write_text("names: {text_a_column: a}\n")
    folder, errors = run(
        "refused", "--do_train", *(flag.format(data=data) for flag in flags), error=True
    )
    assert message in errors
    assert not (folder / "adapter").exists() and not (folder / "checkpoints").exists()


def test_the_adapter_belongs_to_its_command(trained, run, tmp_path):
    folder, _ = trained
    error = command(
        "--task_name=cola,mrpc",
        f"--data_dir={run.folder}/data",
        *base_flags(run.folder / "base"),
        "--do_eval",
        f"--adapter_dir={folder}/adapter",
        f"--output_dir={tmp_path}/out",
    )
    assert error
    assert not (tmp_path / "out" / "run.json").exists()
