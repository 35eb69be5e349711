"""`--init_from` of several tasks: a new task, or others together, begin with what these have."""

import json
import re

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.store.directory import extract_task
from tests import support
from tests.runs import base_flags, command

pytestmark = pytest.mark.long

GOLDEN = support.GOLDEN.parent / "several"
BEFORE = support.GOLDEN.parent / "written_before"
SHARED, EACH, PLUS, PALS = "multitask_adapters", "per_task_adapters", "hyperformer++", "pals"
STILL = ("--do_train", "--num_train_epochs=0.6", "--learning_rate=1e-12")
MRPC = ("--task_name=mrpc", "--data_dir=mrpc")
KINDS = ("--task_name=tsv", "--data_dir=table", "--text_a_column=text", "--label_column=kind")


def run(out, method, *flags):
    """A run that begins from a directory of several tasks and hardly moves."""
    where = (f"--init_from=../several/{method}", f"--output_dir={out}")
    short = ("--max_seq_length=16", "--train_batch_size=8")
    return command(*flags, *base_flags("base"), *short, *where, *STILL, folder=BEFORE)


def weights(folder):
    return safetensors.numpy.load_file(folder / "adapter" / "adapter.safetensors")


@pytest.mark.parametrize("method", support.seldom([SHARED, EACH, PLUS], (PLUS,)))
def test_a_task_goes_on_alone(method, tmp_path, capsys):
    """With the head too, as its labels are the same: an ordinary adapter is trained."""
    assert run(tmp_path, method, *MRPC, "--init_task=pairs", "--do_eval") is None
    expected = json.loads((GOLDEN / "expected.json").read_text())[method]
    found = json.loads((tmp_path / "run.json").read_text())["eval"]
    assert found["eval_loss"] == pytest.approx(expected["eval_pairs_loss"], abs=1e-4)
    saved = load_adapter(str(tmp_path / "adapter"))
    assert saved.config["method"] == "adapters"
    assert "adapters, LayerNorms, head." in capsys.readouterr().out


def test_the_best_of_several_seeds_predicts(tmp_path):
    trials = ("--do_eval", "--do_predict", "--num_trials=2")
    assert run(tmp_path, SHARED, *MRPC, "--init_task=pairs", *trials) is None
    assert (tmp_path / "MRPC.tsv").exists() and (tmp_path / "eval_results.txt").exists()


@pytest.mark.parametrize("method", [SHARED, PLUS])
def test_a_new_task_begins_with_what_they_have_in_common(method, tmp_path, capsys):
    assert run(tmp_path, method, *KINDS) is None
    assert "The head is fresh" in capsys.readouterr().out
    expected = extract_task(load_adapter(str(GOLDEN / method)), None).weights
    found = weights(tmp_path)
    assert found.keys() == expected.keys()
    for name in (n for n in expected if not n.startswith("head/")):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6, err_msg=name)


def test_the_mean_of_embeddings_is_none_of_theirs():
    saved = load_adapter(str(GOLDEN / PLUS))
    name = "adapters/layer_1/attention/output_layer_norm_beta"
    found = [extract_task(saved, task).weights[name] for task in (None, "pairs", "kinds", "scores")]
    assert all(np.abs(found[0] - other).max() > 1e-7 for other in found[1:])


def write_tasks(folder, *names):
    lines = [f"{name}: {{task_name: mrpc, data_dir: mrpc}}" for name in names]
    (folder / "tasks.yaml").write_text("\n".join(lines) + "\n")
    return f"--task_name={folder}/tasks.yaml"


def test_a_hypernetwork_goes_on_with_other_tasks(tmp_path, capsys):
    """One of them is there already; the other begins as the mean of the embeddings."""
    tasks = write_tasks(tmp_path, "pairs", "other")
    assert run(tmp_path / "out", PLUS, tasks, "--tuning=hyperformer++") is None
    before, after = load_adapter(str(GOLDEN / PLUS)).weights, weights(tmp_path / "out")
    embedding = "tasks/{}/hypernetwork/embedding".format
    of_tasks = {n for n in after if n.startswith("tasks/") and n.endswith("/embedding")}
    assert of_tasks == {embedding("pairs"), embedding("other")}
    np.testing.assert_allclose(after[embedding("pairs")], before[embedding("pairs")], atol=1e-6)
    mean = np.mean([before[embedding(task)] for task in ("pairs", "kinds", "scores")], 0)
    np.testing.assert_allclose(after[embedding("other")], mean, atol=1e-6)
    head = "tasks/pairs/head/kernel"
    np.testing.assert_allclose(after[head], before[head], atol=1e-6)
    said = capsys.readouterr().out
    assert "other starts as the mean of all; the head of other is fresh." in said


def test_a_hypernetwork_goes_on_with_one_task_that_begins_as_another(tmp_path, capsys):
    tasks = write_tasks(tmp_path, "other")
    flags = (tasks, "--tuning=hyperformer++", "--init_task=pairs")
    assert run(tmp_path / "out", PLUS, *flags) is None
    before, after = load_adapter(str(GOLDEN / PLUS)).weights, weights(tmp_path / "out")
    for name in ("hypernetwork/embedding", "head/kernel", "head/bias"):
        found, expected = after[f"tasks/other/{name}"], before[f"tasks/pairs/{name}"]
        np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=name)
    assert "other starts as pairs." in capsys.readouterr().out


def test_a_task_to_begin_as_that_no_task_needs_is_said(tmp_path, capsys):
    tasks = write_tasks(tmp_path, "pairs")
    flags = (tasks, "--tuning=hyperformer++", "--init_task=kinds")
    assert run(tmp_path / "out", PLUS, *flags) is None
    assert "--init_task=kinds has no effect" in capsys.readouterr().out


def test_what_it_begins_as_is_part_of_the_run(tmp_path):
    assert run(tmp_path, PLUS, *MRPC, "--init_task=pairs") is None
    error = run(tmp_path, PLUS, *MRPC, "--init_task=kinds")
    assert error and "init_task" in error


REFUSED = {  # What it begins from, flags, what the message says.
    "adapters of each, and none is named": (EACH, KINDS, "--init_task=pairs or another of"),
    "adapters of each, and others": (
        EACH,
        ("--task_name=mrpc=mrpc,rte=mrpc", "--tuning=per_task_adapters"),
        "--init_task=pairs or another of",
    ),
    "a base that was trained": (PALS, KINDS, "no adapter of a single task"),
    "a task that is not there": (PLUS, (*KINDS, "--init_task=other"), "holds the tasks"),
    "one of one task": (
        f"{PLUS}/tasks/kinds",
        (*KINDS, "--init_task=pairs"),
        "names one of several tasks",
    ),
    "another method": (
        PLUS,
        ("--task_name=mrpc", "--data_dir=mrpc", "--tuning=hyperformer"),
        "--tuning=hyperformer: .*trained differently",
    ),
    "another size": (
        PLUS,
        (
            "--task_name=mrpc",
            "--data_dir=mrpc",
            "--tuning=hyperformer++",
            "--task_embedding_size=8",
        ),
        "--task_embedding_size=8: .*trained differently",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_begin_from(case, tmp_path):
    method, flags, message = REFUSED[case]
    error = run(tmp_path / "out", method, *flags)
    assert re.search(message, error or ""), error
    assert not (tmp_path / "out" / "adapter").exists()


def test_a_task_of_nothing(tmp_path):
    flags = (*MRPC, *base_flags("base"), "--init_task=pairs", f"--output_dir={tmp_path}/out")
    error = command(*flags, "--do_train", folder=BEFORE)
    assert "--init_task names a task of --init_from=DIR, which is missing" in (error or "")
