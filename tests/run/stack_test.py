"""`--stack`: trained, evaluated with another language, continued, predicted; refusals."""

import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf import Predictor
from adapter_bert_tf.cli import predict, serve, store
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store import load_adapter
from tests import processes
from tests.refusals import raises_code
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

QUICK = ("--num_train_epochs=0.5", "--notrain_layer_norm", "--learning_rate=0.01")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def languages(mrpc, tiny_base_folder, tmp_path_factory):
    """Runs whose adapters stand for those of two languages."""
    folder = tmp_path_factory.mktemp("languages")
    return [
        train(mrpc, tiny_base_folder, folder / f"language{seed}", "--adapter=pfeiffer+inv", *QUICK,
              f"--seed={seed}")
        for seed in (0, 1)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def task(mrpc, tiny_base_folder, languages, tmp_path_factory):
    """A run on top of the first language; `--stack` may name the run of the language."""
    folder = tmp_path_factory.mktemp("task") / "task"
    flags = [f"--stack={languages[0]}", "--do_eval", "--do_predict", "--do_export"]
    return train(mrpc, tiny_base_folder, folder, "--adapter=pfeiffer", *QUICK, *flags)


def test_a_lower_adapter_may_have_a_trained_pooler(mrpc, tiny_base_folder, tmp_path):
    flags = ("--adapter=pfeiffer", "--train_pooler", *QUICK)
    lower = train(mrpc, tiny_base_folder, tmp_path / "lower", *flags)
    assert any("pooler" in name for name in load_adapter(lower / "adapter").weights)
    stack = f"--stack={lower}"
    upper = train(mrpc, tiny_base_folder, tmp_path / "upper", *flags, stack, "--do_predict")
    out = tmp_path / "out"
    assert evaluate(mrpc, tiny_base_folder, upper / "adapter", out, stack) is None
    assert (out / "MRPC.tsv").read_text() == (upper / "MRPC.tsv").read_text()


def evaluate(mrpc, base, adapter, out, *flags):
    error = command(
        *("--task_name=mrpc", f"--data_dir={mrpc}", "--do_eval", "--do_predict"),
        *(*base_flags(base), "--max_seq_length=16"),
        *(f"--adapter_dir={adapter}", f"--output_dir={out}", *flags),
    )
    return error


def test_the_run_records_the_language(task, languages):
    digest = load_adapter(languages[0] / "adapter").config["sha256"]
    record = json.loads((task / "run.json").read_text())
    assert record["members"] == load_adapter(task / "adapter").config["members"] == [digest]
    trained, whole = record["parameters"]["groups"]["below"]
    assert trained == 0 < whole
    assert (task / "saved_model").is_dir()


def test_an_evaluation_with_the_same_and_with_another_language(
    mrpc, tiny_base_folder, task, languages, tmp_path
):
    answers = []
    for i, language in enumerate(languages):
        out = tmp_path / str(i)
        flag = f"--stack={language}/adapter"
        assert evaluate(mrpc, tiny_base_folder, task / "adapter", out, flag) is None
        answers.append((out / "MRPC.tsv").read_text())
        assert "eval_accuracy" in (out / "eval_results.txt").read_text()
    assert answers[0] == (task / "MRPC.tsv").read_text()


def test_a_training_starts_from_a_stack(mrpc, tiny_base_folder, task, languages, tmp_path):
    flags = [f"--init_from={task}/adapter", f"--stack={languages[1]}", *QUICK]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", "--adapter=pfeiffer", *flags)
    digest = load_adapter(languages[1] / "adapter").config["sha256"]
    assert load_adapter(out / "adapter").config["members"] == [digest]


def test_predict_in_another_language(tiny_base_folder, task, languages, capsys):
    answers = []
    for language in languages:
        flags = [f"--adapter_dir={task}/adapter", f"--stack={language}/adapter"]
        texts = ["--text_a=the cat", "--text_b=a dog"]
        assert predict.main([*flags, f"--base_model={tiny_base_folder}", *texts]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] != answers[1]


def test_served_in_several_languages(tiny_base_folder, task, languages, tmp_path, capsys):
    """One task above two languages, and one that was trained on no other adapter."""
    named = {name: str(task / "adapter") for name in ("de", "fr")}
    alone = str(languages[0] / "adapter")
    stack = {name: str(folder) for name, folder in zip(named, languages, strict=True)}
    flags = [*(f"{n}={f}" for n, f in named.items()), f"alone={alone}", f"--output={tmp_path}/m"]
    flags.append(f"--base_model={tiny_base_folder}")
    assert serve.main([*flags, *(f"--stack={n}={f}" for n, f in stack.items())]) == 0
    predictor = Predictor(named | {"alone": alone}, stack=stack, base=str(tiny_base_folder))
    names = [*named, "alone"]
    expected = predictor(["the cat"] * 3, ["a dog"] * 3, adapter=names)
    served = tf.saved_model.load(f"{tmp_path}/m")
    texts = {"text_a": tf.constant(["the cat"] * 3), "text_b": tf.constant(["a dog"] * 3)}
    answers = served.signatures["tasks"](task=tf.constant(names), **texts)["probabilities"].numpy()
    wanted = [[*answer["probabilities"].values()] for answer in expected]
    np.testing.assert_allclose(answers, wanted, atol=1e-5)
    assert abs(answers[0] - answers[1]).max() > 1e-5
    capsys.readouterr()
    for stacks, message in (
        ([], "--stack=FOLDER"),
        ([f"--stack=de={languages[0]}"], "--stack=FOLDER"),
        ([f"--stack=it={languages[0]}"], "--stack names ['it']"),
        ([f"--stack={languages[0]}"] * 2, "--stack=FOLDER once"),
        ([f"--stack={task}"], "is a stack"),
        ([f"--stack={name}={languages[0]}" for name in names], "no other adapter"),
    ):
        assert serve.main([*flags, *stacks]) == 1
        assert message in capsys.readouterr().err


def test_one_stack_for_several_adapters(tiny_base_folder, task, languages):
    """It is below those that were trained on top of another."""
    adapters = {"task": task / "adapter", "alone": languages[0] / "adapter"}
    folders = {"base": str(tiny_base_folder), "stack": languages[1]}
    texts = ["the cat"] * 2, ["a dog"] * 2
    answers = Predictor(adapters, **folders)(*texts, adapter=[*adapters])
    assert answers[0] == Predictor(adapters["task"], **folders)("the cat", "a dog")
    own_name = Predictor(adapters["task"], base=folders["base"], stack={"mrpc": languages[1]})
    assert answers[0] == own_name("the cat", "a dog")
    with pytest.raises(InputError, match="stack names"):
        Predictor(adapters, base=folders["base"], stack={"tsak": languages[1]})


def test_the_card(task, languages):
    digest = load_adapter(languages[0] / "adapter").config["sha256"]
    card = (task / "adapter" / "README.md").read_text()
    for text in (f"sha256 {digest}", 'stack="FOLDER_BELOW"', "--stack=FOLDER_BELOW"):
        assert text in card
    assert "FOLDER_BELOW" not in (languages[0] / "adapter" / "README.md").read_text()


@pytest.mark.parametrize("format", ["peft", "onnx", "litert"])
def test_formats_of_one_adapter_refuse_a_stack(
    tiny_base_folder, task, languages, tmp_path, capsys, format
):
    flags = [f"--format={format}", f"--base_model={tiny_base_folder}", f"--output={tmp_path}/e"]
    assert store.main(["export", f"{task}/adapter", *flags]) == 1
    error = capsys.readouterr().err
    assert "'mrpc' is a stack" in error and "SavedModel" in error and "{" not in error
    assert not (tmp_path / "e").exists()


def test_the_wrong_order_is_refused(mrpc, tiny_base_folder, task, languages, tmp_path):
    """A stack below, and an invertible part above."""
    for flags, parts in (
        ([f"--stack={task}"], ("is a stack", "single adapter")),
        (["--adapter=pfeiffer+inv", f"--stack={languages[0]}"], ("embeddings", "upper one")),
    ):
        error = try_to_train(mrpc, tiny_base_folder, tmp_path / "a", *flags, *QUICK)
        assert all(part in error for part in parts), error


def test_what_the_lower_adapter_changes_cannot_be_frozen(
    mrpc, tiny_base_folder, languages, tmp_path
):
    """Nor below an adapter that was trained with frozen layers."""
    flags = ["--adapter=pfeiffer", "--frozen_layers=1", *QUICK]
    error = try_to_train(mrpc, tiny_base_folder, tmp_path / "a", *flags, f"--stack={languages[0]}")
    assert "--stack: The adapter below, 'mrpc'" in error and "--frozen_layers=1" in error
    assert not (tmp_path / "a").exists()
    upper = train(
        mrpc, tiny_base_folder, tmp_path / "upper", "--adapter=pfeiffer", "--adapter_layers=1",
        *QUICK,
    )  # fmt: skip
    above = train(mrpc, tiny_base_folder, tmp_path / "above", *flags, f"--stack={upper}")
    with raises_code("conflict", "adapter below", "frozen_layers=1"):
        Predictor(above / "adapter", stack=languages[0] / "adapter", base=str(tiny_base_folder))


def test_a_comparison_with_an_adapter_without_stack(
    mrpc, tiny_base_folder, task, languages, tmp_path
):
    flags = [f"--adapters={task},alone={languages[1]}", f"--stack={languages[0]}"]
    flags += [f"--data_dir={mrpc}", f"--output_dir={tmp_path}/out", *base_flags(tiny_base_folder)]
    words = [sys.executable, "-m", "adapter_bert_tf.analysis", "compare", *flags]
    done = processes.run(words)
    assert done.returncode == 0 and "alone against" in done.stdout, done.stderr


def test_what_is_refused(mrpc, tiny_base_folder, task, languages, tmp_path):
    error = evaluate(mrpc, tiny_base_folder, task / "adapter", tmp_path / "a")
    assert "mrpc" in error and "stack=FOLDER" in error
    stack = f"--stack={languages[0]}"
    error = evaluate(mrpc, tiny_base_folder, languages[1] / "adapter", tmp_path / "a", stack)
    assert "no other adapter" in error
    for flags in (
        ["--tuning=full", stack],
        ["--adapter=pfeiffer+inv", stack],
        [f"--stack={task}/adapter"],
        [f"--stack={tmp_path}/nothing"],
    ):
        assert try_to_train(mrpc, tiny_base_folder, tmp_path / "a", *flags)
    assert not (tmp_path / "a").exists()
