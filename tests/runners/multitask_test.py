"""Runs of several tasks together, by the command."""

import json
import pathlib
import re
import shutil

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.runners.classification.multitask_data import (
    _without_task,
    check_distinct_names,
    with_title,
)
from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.runners.multitask.data import TaskPosition
from adapter_bert_tf.tasks import find_task
from tests import support
from tests.analysis.looked import LookedAt, look
from tests.refusals import raises_code
from tests.runs import base_flags, command, sentence, write_mrpc
from tests.tfds_data import write_tfds

GOLDEN = support.GOLDEN.parent / "written_before"


def write_sts(folder, rows=40):
    """A task in STS-B's layout: the score is higher where the second text has `good`."""
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True)
    header = "\t".join(["index", *"abcdef", "sentence1", "sentence2", "score"])
    for name, count in (("train", rows), ("dev", 16), ("test", 8)):
        lines = []
        for i in range(count):
            texts = [sentence(rng), sentence(rng) + (" good good" if i % 2 else " bad")]
            score = [] if name == "test" else [str(1 + 3 * (i % 2) + i % 3 / 4)]
            lines.append("\t".join([str(i), *"......", *texts, *score]))
        top = header if name != "test" else header.removesuffix("\tscore")
        (folder / f"{name}.tsv").write_text("\n".join([top, *lines]) + "\n")


def write_cola(folder, rows=48):
    """A task in CoLA's layout, of one text."""
    rng = np.random.default_rng(2)
    folder.mkdir(parents=True)
    for name, count in (("train", rows), ("dev", 16)):
        lines = [f"x\t{i % 2}\t\t{sentence(rng)}{' not' if i % 2 else ''}" for i in range(count)]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    lines = [f"{i}\t{sentence(rng)}" for i in range(8)]
    (folder / "test.tsv").write_text("\n".join(["index\tsentence", *lines]) + "\n")


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A folder with three tasks: pairs, scores of pairs, single texts."""
    folder = tmp_path_factory.mktemp("glue")
    write_mrpc(folder / "MRPC")
    write_sts(folder / "STS-B")
    write_cola(folder / "CoLA")
    return folder


def run(glue, base, out, *more, tasks="cola,mrpc,sts-b"):
    return command(
        f"--task_name={tasks}",
        f"--data_dir={glue}",
        *base_flags(base),
        "--max_seq_length=16",
        "--train_batch_size=8",
        f"--output_dir={out}",
        *more,
    )


def record(out):
    return json.loads((pathlib.Path(out) / "run.json").read_text())


# Flags of each method, in addition to those of all.
METHODS = {
    "multitask_full": (),
    "multitask_adapters": ("--adapter_size=4",),
    "per_task_adapters": ("--adapter_size=4",),
    "multitask_layer_norm": (),
    "hyperformer": ("--adapter_size=4",),
    "hyperformer++": ("--adapter_size=4", "--task_embedding_size=8"),
    "pals": ("--pal_size=24", "--learning_rate=1e-3"),
}
WHOLE = ("multitask_full", "pals")  # These change the base, so that no task is apart.


# The others go the ways of this.
@pytest.fixture(scope="module", params=support.seldom(METHODS, ("hyperformer++",)))
def trained(request, glue, tiny_base_folder, tmp_path_factory):
    """(method, output folder) of a run of three tasks."""
    out = tmp_path_factory.mktemp(request.param) / "out"
    error = run(
        glue,
        tiny_base_folder,
        out,
        f"--tuning={request.param}",
        "--do_train",
        "--do_eval",
        "--do_predict",
        "--num_train_epochs=3",
        "--learning_rate=3e-3",
        *METHODS[request.param],
    )
    assert error is None
    return request.param, out


def test_each_task_has_its_results_and_there_is_an_average(trained):
    _, out = trained
    found = record(out)["eval"]
    firsts = ("eval_cola_mcc", "eval_mrpc_accuracy", "eval_sts-b_spearman")
    assert set(firsts) < set(found), found
    assert found["eval_average"] == pytest.approx(np.mean([found[name] for name in firsts]))
    lines = (out / "eval_results.txt").read_text()
    assert all(name in lines for name in (*firsts, "eval_average", "global_step"))


def test_each_task_has_its_predictions(trained):
    _, out = trained
    for task, title in (("cola", "CoLA"), ("mrpc", "MRPC"), ("sts-b", "STS-B")):
        rows = (out / f"{task}_test_results.tsv").read_text().splitlines()
        assert len(rows) == 8
        assert len((out / f"{title}.tsv").read_text().splitlines()) == 9


def test_what_is_left_of_each_task_is_an_ordinary_adapter(
    trained, glue, tiny_base_folder, tmp_path
):
    """It gives, by itself, the results that the task had among the others."""
    method, out = trained
    folder = out / "adapter" / "tasks"
    if method in WHOLE:
        assert not folder.exists()
        return
    assert sorted(path.name for path in folder.iterdir()) == ["cola", "mrpc", "sts-b"]
    together = record(out)["eval"]
    for task in ("cola", "mrpc", "sts-b"):
        alone = tmp_path / task
        data = {"cola": "CoLA", "mrpc": "MRPC", "sts-b": "STS-B"}[task]
        error = command(
            f"--task_name={task}",
            f"--data_dir={glue}/{data}",
            *base_flags(tiny_base_folder),
            "--do_eval",
            f"--adapter_dir={folder}/{task}",
            f"--output_dir={alone}",
        )
        assert error is None
        for name, value in record(alone)["eval"].items():
            among = name.replace("eval_", f"eval_{task}_")
            assert together[among] == pytest.approx(value, abs=1e-4), name


def test_the_whole_is_evaluated_again(trained, glue, tiny_base_folder, tmp_path):
    """Also some of its tasks, in another order."""
    _, out = trained
    error = run(
        glue,
        tiny_base_folder,
        tmp_path,
        "--do_eval",
        f"--adapter_dir={out}/adapter",
        tasks="sts-b,cola",
    )
    assert error is None
    before, again = record(out)["eval"], record(tmp_path)["eval"]
    for name in again:
        if name != "eval_average":
            assert again[name] == pytest.approx(before[name], abs=1e-5), name
    assert not any("mrpc" in name for name in again)


@pytest.mark.long
def test_training_goes_on_from_the_whole(trained, glue, tiny_base_folder, tmp_path):
    method, out = trained
    error = run(
        glue,
        tiny_base_folder,
        tmp_path,
        f"--init_from={out}/adapter",
        *(flag for flag in METHODS[method] if "_size" in flag),  # As it is.
        "--do_train",
        "--num_train_epochs=0.2",
        "--learning_rate=1e-12",
    )
    assert error is None
    weights = [
        safetensors.numpy.load_file(folder / "adapter" / "adapter.safetensors")
        for folder in (out, tmp_path)
    ]
    assert weights[0].keys() == weights[1].keys()
    for name in weights[0]:
        np.testing.assert_allclose(weights[1][name], weights[0][name], atol=1e-4, err_msg=name)


def test_an_analysis_is_not_of_all_together(trained, glue, tiny_base_folder, tmp_path):
    method, out = trained
    at = LookedAt(f"{glue}/MRPC", tiny_base_folder, None)
    error = look("influence", at, f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}/look")
    assert error.startswith(f"error: '{out}/adapter' holds ") and " tasks that " in error
    assert ("the tasks cola,mrpc" if method in WHOLE else f"{out}/adapter/tasks/cola") in error


def test_python_takes_the_adapter_of_a_task(trained, tiny_base_folder):
    method, out = trained
    model = abt.AdapterModel(abt.load_base(tiny_base_folder))
    if method in WHOLE:
        with raises_code("mismatch", method):
            model.load_adapter(out / "adapter")
        return
    with raises_code("conflict", "tasks/cola"):
        model.load_adapter(out / "adapter")
    for task in ("cola", "mrpc"):
        assert model.load_adapter(out / "adapter" / "tasks" / task) == task


@pytest.mark.long
def test_the_saved_model_answers_as_the_run(trained, glue, tiny_base_folder, tmp_path):
    """By the signature of each task, and by that which takes a task with each row."""
    _, out = trained
    error = run(
        glue,
        tiny_base_folder,
        tmp_path,
        "--do_export",
        "--do_predict",
        f"--adapter_dir={out}/adapter",
    )
    assert error is None
    served = tf.saved_model.load(str(tmp_path / "saved_model"))
    assert set(served.signatures) == {"cola", "mrpc", "sts_b", "tasks"}
    found, asked = {}, []
    for task, title, columns in (
        ("cola", "CoLA", (1, None)),
        ("mrpc", "MRPC", (3, 4)),
        ("sts-b", "STS-B", (7, 8)),
    ):
        lines = (glue / title / "test.tsv").read_text().splitlines()[1:]
        texts = [[line.split("\t")[i] if i else "" for i in columns] for line in lines]
        asked += [(task, *pair) for pair in texts]
        names = ("text_a", "text_b") if columns[1] else ("text_a",)
        fed = {n: tf.constant([pair[i] for pair in texts]) for i, n in enumerate(names)}
        answer = served.signatures[task.replace("-", "_")](**fed)
        rows = (out / f"{task}_test_results.tsv").read_text().splitlines()
        expected = np.array([[float(cell) for cell in row.split("\t")] for row in rows])
        found[task] = answer.get("probabilities", answer.get("score"))
        np.testing.assert_allclose(np.reshape(found[task], expected.shape), expected, atol=1e-5)
    mixed = served.signatures["tasks"](
        **{
            name: tf.constant([row[i] for row in asked])
            for i, name in enumerate(("task", "text_a", "text_b"))
        }
    )
    assert np.isfinite(mixed["logits"]).all()
    np.testing.assert_allclose(mixed["probabilities"][:8, :2], found["cola"], atol=1e-5)
    np.testing.assert_allclose(mixed["score"][16:], found["sts-b"], atol=1e-5)


@pytest.mark.slow
def test_adapters_that_were_trained_together_are_fused(trained, glue, tiny_base_folder, tmp_path):
    """They have the same LayerNorms, which come along."""
    method, out = trained
    if method in (*WHOLE, "multitask_layer_norm"):
        return
    members = ",".join(f"{out}/adapter/tasks/{task}" for task in ("cola", "mrpc", "sts-b"))
    error = command(
        "--task_name=mrpc",
        f"--data_dir={glue}/MRPC",
        *base_flags(tiny_base_folder),
        "--do_train",
        "--do_eval",
        "--max_seq_length=16",
        "--tuning=fusion",
        f"--fuse={members}",
        f"--output_dir={tmp_path}",
    )
    assert error is None
    assert record(tmp_path)["adapter"]["own_norms"] is True


def test_those_of_upper_layers_are_refused_by_a_fusion(glue, tiny_base_folder, tmp_path):
    """Before it trains: their LayerNorms are of the upper layers only."""
    more = ("--tuning=per_task_adapters", "--frozen_layers=1", "--num_train_epochs=1")
    together = run(glue, tiny_base_folder, tmp_path / "two", "--do_train", *more, tasks="cola,mrpc")
    assert together is None
    members = ",".join(f"{tmp_path}/two/adapter/tasks/{task}" for task in ("cola", "mrpc"))
    fusion = ("--tuning=fusion", f"--fuse={members}", "--do_train", f"--output_dir={tmp_path}/out")
    alone = ("--task_name=mrpc", f"--data_dir={glue}/MRPC", *base_flags(tiny_base_folder))
    message = command(*alone, "--max_seq_length=16", *fusion)
    assert "LayerNorms of its upper layers" in message and "--notrain_layer_norm" in message
    assert not (tmp_path / "out" / "adapter").exists()


def test_one_task_of_the_whole_is_asked_for(trained, glue, tiny_base_folder, tmp_path):
    """By its own folder, as if it were alone."""
    _, out = trained
    where = (f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}")
    task = ("--task_name=sts-b", f"--data_dir={glue}/STS-B")
    assert command(*task, *base_flags(tiny_base_folder), "--do_eval", *where) is None
    for name, value in record(tmp_path)["eval"].items():
        if name != "eval_average":
            assert value == pytest.approx(record(out)["eval"][name], abs=1e-5), name


@pytest.fixture(scope="module")
def finished(glue, tiny_base_folder, tmp_path_factory):
    """(output folder, function that gives its command again) of two tasks behind one of GLUE's."""
    folder = tmp_path_factory.mktemp("named")
    one = f"task_name: cola, data_dir: {glue}/CoLA"
    (folder / "tasks.yaml").write_text(f"first: {{{one}}}\nsecond: {{{one}}}\n")
    flags = ("--tuning=multitask_adapters", "--adapter_size=2", "--num_train_epochs=0.3")
    what = ("--do_train", "--do_eval", "--do_predict")

    def again(*more, tasks=folder / "tasks.yaml"):
        return run(glue, tiny_base_folder, folder / "out", *flags, *what, *more, tasks=tasks)

    assert again() is None
    return folder / "out", again


def test_tasks_behind_one_row_have_files_of_their_own(finished):
    out, _ = finished
    for name in ("first", "second"):
        assert len((out / f"{name}.tsv").read_text().splitlines()) == 9
        assert (out / f"{name}_test_results.tsv").exists()
    assert not (out / "CoLA.tsv").exists()


LOST = {
    "one adapter": lambda tasks: shutil.rmtree(tasks / "first"),
    "all adapters": shutil.rmtree,
    "another's": lambda tasks: shutil.copytree(tasks / "second", tasks / "first", dirs_exist_ok=1),
}


@pytest.mark.parametrize("case", LOST)
def test_an_adapter_of_a_task_that_is_lost_is_made_again(case, finished, capsys):
    out, again = finished
    tasks = out / "adapter" / "tasks"
    before = {path: path.read_bytes() for path in sorted(tasks.rglob("*.safetensors"))}
    LOST[case](tasks)
    assert main(["verify", str(out / "adapter")]) == 1
    assert again() is None
    assert "Missing or changed, so made again" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in sorted(tasks.rglob("*.safetensors"))} == before
    assert main(["verify", str(out / "adapter")]) == 0


@pytest.mark.slow
def test_overwrite_removes_what_the_last_run_wrote_of_other_tasks(finished, glue):
    out, again = finished
    error = again("--overwrite", tasks="cola,mrpc")
    assert error is None
    assert (out / "CoLA.tsv").exists() and (out / "MRPC.tsv").exists()
    assert not list(out.glob("first*")) and not list(out.glob("second*"))


REFUSED = {  # name: (tasks, flags, what the message says)
    "one twice": ("cola,mrpc,CoLA", (), r"each once\. Received twice: \['cola'\]"),
    "no task": (",", (), "--task_name=.,. .*each once"),
    "an unknown one": ("cola,nope", (), "Unknown task 'nope'"),
    "no folder": ("cola,rte", (), "must hold one folder for each task. Received for 'rte': none"),
    "another folder": ("cola,rte=/nowhere", (), "The task 'rte': .*nowhere"),
    "no training data": ("cola,ax={mrpc}", (), "The task 'ax'"),
    "one of one task to begin from": (
        "cola,mrpc",
        (f"--init_from={GOLDEN}/adapters/houlsby",),
        "trained differently .adapters|trained on another base",
    ),
    "a method for one": ("cola,mrpc", ("--tuning=adapters",), "Choose one of multitask_full,"),
    "a fusion": ("cola,mrpc", ("--tuning=fusion", "--fuse=x"), "lists several tasks"),
    "a temperature": ("cola,mrpc", ("--sampling_temperature=0.5",), "--sampling_temperature: .*1"),
    "a name for all": ("cola,mrpc", ("--adapter_name=x",), "--adapter_name .*one task"),
    "a file that is none": ("nowhere.yaml", (), "Cannot read --task_name=nowhere.yaml"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_training(case, glue, tiny_base_folder, tmp_path):
    tasks, flags, message = REFUSED[case]
    error = run(
        glue,
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=per_task_adapters",
        "--do_train",
        *flags,
        tasks=tasks.format(mrpc=glue / "MRPC"),
    )
    assert re.search(message, error or ""), error
    assert not (tmp_path / "out" / "adapter").exists()


def test_two_tasks_of_one_signature_are_refused_before_training(glue, tiny_base_folder, tmp_path):
    lines = [f"{name}: {{task_name: cola, data_dir: {glue}/CoLA}}" for name in ("a-b", "a.b")]
    (tmp_path / "tasks.yaml").write_text("\n".join(lines) + "\n")
    out, tasks = tmp_path / "out", str(tmp_path / "tasks.yaml")
    more = ("--tuning=multitask_adapters", "--do_train", "--do_export")
    error = run(glue, tiny_base_folder, out, *more, tasks=tasks)
    assert re.search(r"its own signature.*\['a-b', 'a\.b'\]\. Rename", error or ""), error
    assert not (out / "checkpoints").exists()


CALLED_ALIKE = {  # Names of two tasks of cola or mnli: what they would have in common.
    "files": ({"x": "cola", "x_test_results": "cola"}, "invalid: 'x_test_results'"),
    "files but for case": ({"x": "cola", "X_test_results": "cola"}, "invalid: 'X_test_results'"),
    "results": (
        {"mnli": "mnli", "mnli_mismatched": "cola"},
        "invalid: 'mnli'",
    ),
    "nothing": ({"mnli": "mnli", "mismatched": "cola", "x": "cola", "test_results": "cola"}, None),
}


@pytest.mark.parametrize("case", CALLED_ALIKE)
def test_tasks_whose_files_or_results_would_be_called_alike(case):
    names, message = CALLED_ALIKE[case]
    tasks = [
        ClassificationData(
            with_title(name, find_task(of)),
            {},
            {},
            {},
            None,
            16,
            TaskPosition(name, i, slice(i, i + 1)),
        )
        for i, (name, of) in enumerate(names.items())
    ]
    if message is None:
        check_distinct_names(tasks)
        return
    with raises_code(message):
        check_distinct_names(tasks)


def test_a_task_that_ships_with_the_package_beside_one_in_a_folder(
    glue, tiny_base_folder, tmp_path
):
    more = ("--tuning=multitask_adapters", "--do_train", "--dry_run", "--max_seq_length=16")
    error = run(glue, tiny_base_folder, tmp_path, *more, tasks="cola,demo_factuality")
    assert error is None, error


def test_one_of_them_goes_on_alone(trained, glue, tiny_base_folder, tmp_path, capsys):
    """From what it had among the others, without being told which it is."""
    method, out = trained
    start = (f"--init_from={out}/adapter", "--do_train", "--num_train_epochs=0.5")
    error = run(glue, tiny_base_folder, tmp_path, f"--data_dir={glue}/CoLA", *start, tasks="cola")
    if method in WHOLE:
        assert "no adapter of a single task" in (error or ""), error
    else:
        assert error is None
        assert re.search(r"of 'cola': .*LayerNorms.*, head\.", capsys.readouterr().out)


FILES = {  # What a YAML file of tasks may not say.
    "a list": ("- cola", "`name: {setting: value}` lines"),
    "a number for a name": ("1: {task_name: cola}", "name of a task must be text. Received: 1"),
    "names that differ in case": (
        "cola:\nCoLA: {task_name: mrpc}",
        "Received twice: .'cola'.. In a YAML",
    ),
    "columns that are missing": ("a: {task_name: tsv, data_dir: x}", "The task 'a': "),
    "nothing": ("", r"yaml' must list tasks, each once. There is none. Write a line .*for each\.$"),
    "a setting of nothing": ("cola: {data_dir: }", "data_dir of .cola. must be one value"),
    "an unknown setting": (
        "cola: {max_seq_length: 8, data_dir: x, dat_dir: x}",
        r"the task 'cola' can have no \['max_seq_length', 'dat_dir'\] of its own, only some of \[",
    ),
    "no settings": ("cola: CoLA", "some of .*Received: {'cola': 'CoLA'}"),
    "a number for yes": ("a: {text_a_column: x, regression: 1}", "must be true or false"),
    "a text for a number": ("cola: {split_seed: x}", "must be a whole number"),
    "too few": ("cola: {max_train_examples: 1}", "at least 2"),
    "a name of a path": ("../x: {task_name: cola}", "different names of letters"),
    "any number of labels": (  # Said before a table is read: this one is not there.
        "a: {task_name: tsv, data_dir: x, text_a_column: x, label_column: y, multi_label: true}",
        r"Received: multi_label of \['a'\]",
    ),
    "an alias bomb": ("a: &a [x]\nb: [*a, *a]", "some of"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_lists_no_tasks_is_refused(case, glue, tiny_base_folder, tmp_path):
    text, message = FILES[case]
    (tmp_path / "tasks.yaml").write_text(text)
    error = run(
        glue,
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=multitask_adapters",
        "--do_train",
        tasks=str(tmp_path / "tasks.yaml"),
    )
    assert re.search(message, error or ""), error


@pytest.mark.slow
def test_thirty_tasks_numbers_for_one_and_one_layer(glue, tiny_base_folder, tmp_path):
    lines = [f"t{i}: {{task_name: cola, data_dir: {glue}/CoLA}}" for i in range(30)]
    (tmp_path / "tasks.yaml").write_text("\n".join(lines) + "\n")
    error = run(
        glue,
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=hyperformer++",
        "--task_embedding_size=1",
        "--adapter_size=1",
        "--adapter_layers=1",
        "--do_train",
        "--do_eval",
        "--do_export",
        "--num_train_epochs=0.1",
        tasks=str(tmp_path / "tasks.yaml"),
    )
    assert error is None
    assert len(record(tmp_path / "out")["eval"]) == 30 * 3 + 1
    assert len(list((tmp_path / "out" / "adapter" / "tasks").iterdir())) == 30


WRONG = {
    "what is the same for all tasks": (
        ("--tuning=hyperformer++", "--projected_size=1"),
        "projected_size of hyperformer.. .*2 or more",
    ),
    "heads that do not divide": (
        ("--tuning=pals", "--pal_size=200"),
        "--pal_size and --pal_heads: .*multiple of num_heads, 12. Received: 200",
    ),
    "an absurd size": (
        ("--tuning=hyperformer", "--projected_size=1000000000"),
        "projected_size is 1 to 65536. Received: 1000000000",
    ),
    "a layer that is not there": (
        ("--tuning=hyperformer++", "--adapter_layers=5"),
        "adapter layers must be below 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_sizes_that_cannot_be(case, glue, tiny_base_folder, tmp_path):
    flags, message = WRONG[case]
    error = run(glue, tiny_base_folder, tmp_path / "out", "--do_train", *flags, tasks="cola,mrpc")
    assert re.search(message, error or ""), error
    assert not (tmp_path / "out" / "adapter").exists()


def write_table(folder, name, labels, rows, column="text", label="label"):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    lines = [f"{sentence(rng)}\t{labels[i % len(labels)]}" for i in range(rows)]
    (folder / f"{name}.tsv").write_text("\n".join([f"{column}\t{label}", *lines]) + "\n")


@pytest.mark.slow
def test_tables_of_ones_own_each_with_its_columns(glue, tiny_base_folder, tmp_path):
    """From a YAML file, beside a GLUE task under another name; one of scores, one tiny."""
    write_table(tmp_path / "a", "train", ["good", "bad", "none"], 200)
    write_table(tmp_path / "b", "train", ["1.5", "2.5"], 10, "words", "stars")
    write_table(tmp_path / "b", "dev", ["1.5", "2.5"], 4, "words", "stars")
    (tmp_path / "tasks.yaml").write_text(
        f"reviews: {{data_dir: {tmp_path}/a, text_a_column: text, label_column: label}}\n"
        f"stars:\n  data_dir: {tmp_path}/b\n  text_a_column: words\n  label_column: stars\n"
        f"  regression: true\n"
        f"grammar: {{task_name: cola, data_dir: {glue}/CoLA, max_train_examples: 20}}\n"
    )
    error = run(
        glue,
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=per_task_adapters",
        "--adapter_size=2",
        "--do_train",
        "--do_eval",
        tasks=str(tmp_path / "tasks.yaml"),
    )
    assert error is None
    found = record(tmp_path / "out")["eval"]
    assert {"eval_reviews_accuracy", "eval_stars_spearman", "eval_grammar_mcc"} < set(found)
    model = abt.AdapterModel(abt.load_base(tiny_base_folder))
    for name in ("reviews", "stars", "grammar"):
        model.load_adapter(tmp_path / "out" / "adapter" / "tasks" / name)
    assert model.config("reviews")["labels"] == ["bad", "good", "none"]


@pytest.mark.long
def test_the_best_step_is_that_of_the_best_average(glue, tiny_base_folder, tmp_path):
    more = ("--keep=best", "--eval_every_steps=4", "--num_train_epochs=2", "--learning_rate=1e-2")
    tuning = ("--tuning=multitask_adapters", "--adapter_size=4", "--do_train", "--do_eval")
    error = run(glue, tiny_base_folder, tmp_path, *tuning, *more, tasks="mrpc,sts-b")
    assert error is None
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    averages = {row["step"]: row[name] for row in rows if (name := "dev/eval_average") in row}
    assert len(set(averages.values())) > 2
    best = max(averages, key=averages.get)
    kept = record(tmp_path)
    assert kept["global_step"] == best < max(averages), averages
    assert kept["eval"]["eval_average"] == pytest.approx(averages[best], abs=1e-6)


@pytest.mark.slow
def test_a_sweep_over_the_methods(glue, tiny_base_folder, tmp_path):
    methods = ["multitask_adapters", "hyperformer++", "pals"]
    (tmp_path / "grid.yaml").write_text(f"tuning: {methods}\n")
    what = ("--do_train", "--do_eval", "--num_train_epochs=0.2", f"--sweep={tmp_path}/grid.yaml")
    assert run(glue, tiny_base_folder, tmp_path / "out", *what) is None
    header, *runs = (tmp_path / "out" / "sweep.csv").read_text().splitlines()
    assert "eval_average" in header and [line.split(",")[0] for line in runs] == methods
    (tmp_path / "grid.yaml").write_text("tuning: [multitask_adapters, adapters]\n")
    error = run(glue, tiny_base_folder, tmp_path / "other", *what)
    assert "Choose one of multitask_full" in error


@pytest.mark.long
def test_tasks_of_tensorflow_datasets(tiny_base_folder, tmp_path):
    for config in ("cola", "rte", "stsb"):
        write_tfds(tmp_path / "data", config)
    error = run(
        tmp_path / "data",
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=multitask_adapters",
        "--data_source=tfds",
        "--train_batch_size=2",
        *("--do_train", "--do_eval", "--do_predict"),
        tasks="cola,rte,sts-b",
    )
    assert error is None
    assert list(record(tmp_path / "out")["tasks"]) == ["cola", "rte", "sts-b"]
    assert (tmp_path / "out" / "RTE.tsv").exists()


@pytest.mark.slow
def test_thirty_tasks_at_once(glue, tiny_base_folder, tmp_path):
    lines = [f"t{i}: {{task_name: cola, data_dir: {glue}/CoLA}}" for i in range(30)]
    (tmp_path / "tasks.yaml").write_text("\n".join(lines) + "\n")
    error = run(
        glue,
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=per_task_adapters",
        "--adapter_size=2",
        "--do_train",
        "--num_train_epochs=0.1",
        tasks=str(tmp_path / "tasks.yaml"),
    )
    assert error is None
    assert len(list((tmp_path / "out" / "adapter" / "tasks").iterdir())) == 30


@pytest.mark.parametrize(
    ("said", "bare"),
    [
        ("The task 'a' has no training data.", "Has no training data."),
        ("tab/train.tsv holds no examples.", "tab/train.tsv holds no examples."),
    ],
)
def test_a_message_says_the_task_once_and_paths_as_they_are(said, bare):
    assert _without_task(InputError(said), "a") == bare


def test_labels_that_differ_between_splits_are_refused(glue, tiny_base_folder, tmp_path):
    write_table(tmp_path / "a", "train", ["x", "y"], 20)
    write_table(tmp_path / "a", "dev", ["x", "z"], 8)
    text = f"a: {{data_dir: {tmp_path}/a, text_a_column: text, label_column: label}}\n"
    (tmp_path / "tasks.yaml").write_text(text + f"cola: {{data_dir: {glue}/CoLA}}\n")
    error = run(
        glue,
        tiny_base_folder,
        tmp_path / "out",
        "--tuning=multitask_full",
        "--do_train",
        "--do_eval",
        tasks=str(tmp_path / "tasks.yaml"),
    )
    assert re.search("The task 'a': .*dev.tsv.*'z'", error or ""), error
