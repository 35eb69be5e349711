"""`run_adapt.py`: whole runs on made-up text and a tiny base."""

import gzip
import json
import math
import pathlib
import shutil

import numpy as np
import pytest
import safetensors.numpy

import adapter_bert_tf as abt
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.data.plain_text import masking
from adapter_bert_tf.store import load_adapter
from tests import support
from tests.refusals import raises_code
from tests.runs import base_flags, run_command, write_mrpc

SENTENCES = [
    "the cat sat on the mat .",
    "a dog ran in the house .",
    "the sun is red today .",
    "we walk in the rain again .",
]
TINY = ("--max_seq_length=16", "--train_batch_size=8", "--noreport")
SCORES = {f"eval_{name}" for name in ("loss", "perplexity", "accuracy", "log_likelihood")}


def adapt(*flags):
    return run_command(Command.ADAPT, *TINY, *flags)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A base, and a text of 240 lines: 132 sequences of 16 positions."""
    folder = tmp_path_factory.mktemp("adapt")
    support.write_google(folder / "base")
    lines = np.random.default_rng(0).choice(SENTENCES, 240)
    (folder / "text").mkdir()
    (folder / "text" / "a.txt").write_text("\n".join(lines[:120]))
    packed = gzip.compress("\n".join(lines[120:]).encode())
    (folder / "text" / "b.txt.gz").write_bytes(packed)
    (folder / "dev.txt").write_text("\n".join(lines[:20]))
    return folder


@pytest.fixture(scope="module")
def run(folder):
    """A function from an output folder's name and flags to the folder, and what was printed."""

    def start(name, *flags, text=True):
        words = (*base_flags(folder / "base"), *flags, f"--output_dir={folder}/{name}")
        words += (f"--text_files={folder}/text",) if text else ()
        status, printed, errors = adapt(*words)
        assert status == 0, errors
        return folder / name, printed

    return start


@pytest.fixture(scope="module")
def trained(run):
    flags = ("--adapter=pfeiffer+inv", "--eval_every_steps=10", "--keep=best", "--dev_share=0.1")
    return run("trained", *flags, "--num_train_epochs=2")


def results(folder):
    return json.loads((folder / "run.json").read_text())["eval"]


def weights(folder):
    return safetensors.numpy.load_file(folder / "adapter" / "adapter.safetensors")


def test_what_it_prints_and_writes(trained):
    folder, printed = trained
    line = next(line for line in printed.splitlines() if line.startswith("Text: "))
    assert line.startswith("Text: 240 texts, ")
    assert line.endswith("train: 119 sequences, dev: 13 sequences, of 16"), line
    assert "The head that predicts words is fresh" in printed
    assert "dev at step 20/" in printed and "eval_perplexity" in printed
    scores = results(folder)
    assert scores.keys() == SCORES and 0 <= scores["eval_accuracy"] <= 1
    assert scores["eval_log_likelihood"] == -scores["eval_loss"]
    assert math.isclose(scores["eval_perplexity"], math.exp(scores["eval_loss"]))
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    assert (config["head"], config["labels"], config["name"]) == ("masked_words", [], "text")
    assert config["metric"]["name"] == "log_likelihood" and config["dev_share"] == 0.1
    assert config["tuning"]["train_layer_norm"] is False


def test_nothing_of_the_base_is_in_the_adapter(trained):
    names = set(weights(trained[0]))
    assert not [name for name in names if name.startswith("bert/")]
    assert {name for name in names if name.startswith("head/")} == {
        "head/bias",
        "head/dense/bias",
        "head/dense/kernel",
        "head/layer_norm/beta",
        "head/layer_norm/gamma",
    }


def test_the_same_command_again_finds_itself_done(run, trained):
    flags = ("--adapter=pfeiffer+inv", "--eval_every_steps=10", "--keep=best", "--dev_share=0.1")
    assert "holds the results of this very run" in run("trained", *flags, "--num_train_epochs=2")[1]


def test_a_run_without_a_dev_set_finds_itself_done(run):
    flags = ("--adapter=pfeiffer", "--dev_share=0", "--num_train_epochs=0.2")
    folder, _ = run("undivided", *flags)
    assert not (folder / "eval_results.txt").exists()
    assert "holds the results of this very run" in run("undivided", *flags)[1]


def test_a_saved_adapter_is_evaluated_on_the_same_text(run, trained):
    adapter = f"--adapter_dir={trained[0]}/adapter"
    folder, _ = run("applied", "--nodo_train", adapter)
    assert results(folder) == pytest.approx(results(trained[0]), rel=1e-5)


def test_it_learns(run, folder):
    (folder / "repeated.txt").write_text("the cat sat on a red mat .\n" * 300)
    flags = ("--tuning=full", "--learning_rate=1e-2", "--num_train_epochs=15", "--dropout=0")
    out, _ = run("learned", f"--text_files={folder}/repeated.txt", *flags, text=False)
    assert results(out)["eval_loss"] < 1.0 < math.log(len(support.VOCABULARY)) - 2


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.long
@pytest.mark.parametrize("flags", [("--whole_word_masking",), ("--gradient_accumulation_steps=2",)])
def test_a_run_that_was_killed_ends_with_the_same_bytes(run, folder, monkeypatch, flags):
    flags = (*flags, "--adapter=pfeiffer", "--num_train_epochs=1", "--save_checkpoints_steps=2")
    whole, _ = run(f"whole{len(flags[0])}", *flags)
    made, steps = masking.Masking.mask, []

    def mask(self, ids, lengths, seed, step, rows):
        steps.append(step)
        if step == 5 and seed == 0 and len(rows) >= 8:
            raise Killed
        return made(self, ids, lengths, seed, step, rows)

    name = f"killed{len(flags[0])}"
    words = (*base_flags(folder / "base"), f"--text_files={folder}/text", *flags)
    with monkeypatch.context() as context:
        context.setattr(masking.Masking, "mask", mask)
        status, _, errors = adapt(*words, f"--output_dir={folder}/{name}")
    assert status == 1 and "Killed" in errors and max(steps) >= 5
    assert not (folder / name / "adapter").exists()
    killed, printed = run(name, *flags)
    assert json.loads((killed / "run.json").read_text())["resumed_from_step"] >= 2, printed
    for file in ("adapter.safetensors",):
        assert (killed / "adapter" / file).read_bytes() == (whole / "adapter" / file).read_bytes()
    assert results(killed) == results(whole)


def test_another_adapter_continues_from_it(run, trained):
    flags = (f"--init_from={trained[0]}/adapter", "--num_train_epochs=0.2")
    _, printed = run("continued", *flags, "--learning_rate=1e-9")
    assert "head" in next(line for line in printed.splitlines() if line.startswith("Starting from"))
    assert "The head that predicts words" not in printed


def test_a_task_starts_from_it(folder, trained):
    """The adapters are those of the text; head, LayerNorms and pooler are the task's."""
    write_mrpc(folder / "mrpc", rows=16)
    flags = ("--task_name=mrpc", "--do_train", f"--data_dir={folder}/mrpc", *TINY)
    out = folder / "task"
    status, printed, errors = run_command(
        Command.CLASSIFIER,
        *(*flags, *base_flags(folder / "base"), f"--init_from={trained[0]}/adapter"),
        *("--learning_rate=1e-9", f"--output_dir={out}", "--train_pooler"),
    )
    assert status == 0, errors
    assert "Starting from" in printed and "there masked words" in printed
    before, after = weights(trained[0]), weights(out)
    shared = [name for name in before if name.startswith("adapters/")]
    for name in shared:
        np.testing.assert_allclose(after[name], before[name], atol=1e-6)
    assert after["head/kernel"].shape == (16, 2) and "bert/pooler/dense/kernel" in after
    assert "bert/embeddings/LayerNorm/gamma" in after


def test_a_task_stands_on_it(folder, trained):
    write_mrpc(folder / "stacked", rows=16)
    flags = ("--task_name=mrpc", "--do_train", f"--data_dir={folder}/stacked", *TINY)
    status, _, errors = run_command(
        Command.CLASSIFIER,
        *(*flags, *base_flags(folder / "base"), f"--stack={trained[0]}", "--adapter=pfeiffer"),
        f"--output_dir={folder}/above",
    )
    assert status == 0, errors
    config = json.loads((folder / "above" / "adapter" / "adapter_config.json").read_text())
    assert config["members"]


def test_python_loads_and_fills_masks(folder, trained):
    path = trained[0] / "adapter"
    base = abt.load_base(str(folder / "base"))
    model = abt.AdapterModel(base)
    name = model.load_adapter(path)
    assert name == "text"
    predictor = abt.Predictor(path, base=base)
    texts = ["the cat [MASK] on the mat", "[MASK] dog ran in [MASK] house"]
    answers = predictor(texts)
    assert [len(answer["words"]) for answer in answers] == [1, 2]
    for answer in answers:
        for words, shares in zip(answer["words"], answer["probabilities"], strict=True):
            assert len(words) == 5 and shares == sorted(shares, reverse=True) and sum(shares) < 1
    encoder = abt.TextEncoder(base.vocabulary, 16)
    pieces = support.VOCABULARY
    ids = [2, *(pieces.index(w) for w in "the cat [MASK] on the mat".split()), 3]
    inputs = {
        "input_word_ids": [ids],
        "input_mask": [[1] * len(ids)],
        "input_type_ids": [[0] * len(ids)],
    }
    scores = model(inputs, adapter=name)[0, 3].numpy()
    assert pieces[int(np.argmax(scores))] == answers[0]["words"][0][0]
    assert encoder.mask_id() == 4
    with raises_code("invalid", "[MASK]", "at 1: ("):
        predictor(["the [MASK]", "the cat sat"])
    with raises_code("invalid", "[MASK]"):  # It is read no further than 14 word pieces.
        predictor("the cat sat on the mat . " * 3 + "[MASK]")
    (folder / "rows.csv").write_text('text\nthe [MASK]\n"the cat"\n')
    with raises_code("invalid", "rows.csv, line 3", "no [MASK]", "skip_bad_rows=True"):
        predictor.predict_file(folder / "rows.csv", folder / "answers.csv")
    assert not (folder / "answers.csv").exists()
    predictor.predict_file(folder / "rows.csv", folder / "answers.csv", skip_bad_rows=True)
    assert (folder / "answers.csv").read_text().splitlines()[2] == "the cat,,"
    copy = folder / "copy"
    model.save_adapter(name, copy)
    assert load_adapter(copy).weights.keys() == load_adapter(path).weights.keys()
    new = model.add_adapter("new", head="masked_words", config="pfeiffer", max_seq_length=16)
    assert new(inputs_of(inputs)).shape == (1, len(ids), len(pieces))


def inputs_of(lists):
    return {name: np.array(value, np.int32) for name, value in lists.items()}


REFUSED = {
    "no text": (["--text_files="], "--text_files is missing"),
    "no file": (["--text_files={0}/none.txt"], "none.txt"),
    "a pattern without files": (["--text_files={0}/text/*.md"], "*.md"),
    "binary": (["--text_files={0}/base/bert_model.ckpt.index"], "binary"),
    "too little": (["--text_files={0}/short.txt"], "two are needed"),
    "output inside": (["--text_files={0}", "--output_dir={0}/out"], "separate folders"),
    "a metric of others": (["--metric=f1"], "log_likelihood"),
    "no share": (["--mask_share=0"], "--mask_share"),
    "no dev set": (["--dev_share=0", "--keep=best"], "dev set"),
    "no dev set to compare on": (["--dev_share=0", "--num_trials=2"], "no dev set"),
    "a task's adapter": (
        ["--nodo_train", "--adapter_dir={0}/task/adapter"],
        "Received: masked words",
    ),
    "several tasks": (["--tuning=hyperformer"], "several tasks"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(folder, trained, case):
    if case == "a task's adapter" and not (folder / "task").exists():
        test_a_task_starts_from_it(folder, trained)
    (folder / "short.txt").write_text("a cat\n")
    flags, message = REFUSED[case]
    own = [flag.format(folder) for flag in flags]
    usual = [f"--text_files={folder}/text", f"--output_dir={folder}/refused"]
    usual = [flag for flag in usual if not any(o.startswith(flag.split("=")[0]) for o in own)]
    status, _, errors = adapt(*base_flags(folder / "base"), *usual, *own)
    assert status == 1 and message in errors, errors


def test_a_base_without_a_mask_is_refused(folder, tmp_path):
    shutil.copytree(folder / "base", tmp_path / "base")
    path = pathlib.Path(tmp_path / "base" / "vocab.txt")
    path.write_text(path.read_text().replace("[MASK]", "[OTHER]"))
    status, _, errors = adapt(
        *base_flags(tmp_path / "base"),
        *(f"--text_files={folder}/text", f"--output_dir={tmp_path}/out"),
    )
    assert status == 1 and "[MASK]" in errors and "vocab.txt" in errors


def test_files_to_evaluate_on_and_their_packed_text(run, folder):
    flags = (
        f"--dev_files={folder}/dev.txt",
        "--num_train_epochs=0.2",
        f"--features_dir={folder}/f",
    )
    out, printed = run("own_dev", *flags, "--text_unit=paragraph")
    record = json.loads((out / "run.json").read_text())
    assert record["examples"]["train"] > 100 and record["examples"]["dev"] < 12
    assert len(list((folder / "f").iterdir())) == 2 and not (out / "features").exists()
    assert "Text: 2 texts, " in printed and "; 1 text, " in printed


def test_the_evaluations_of_a_subset(run, folder):
    flags = ("--dev_share=0.3", "--eval_every_steps=5", "--max_eval_examples=4")
    out, _ = run("subset", *flags, "--num_train_epochs=0.5")
    rows = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    during = [row["dev/eval_loss"] for row in rows if "dev/eval_loss" in row]
    assert during and during[-1] != results(out)["eval_loss"]


def test_the_card_names_flags_of_this_command(run, folder):
    out, _ = run("card", "--adapter=pfeiffer", "--num_train_epochs=0.2")
    card, where = (out / "adapter" / "README.md").read_text(), f"--adapter_dir={out}/adapter"
    assert "run_adapt.py --nodo_train --text_files=FILES --adapter_dir=THIS_FOLDER" in card
    assert "Labels" not in card and "| Task | masked_words |" in card
    run("evaluated", "--nodo_train", where)
