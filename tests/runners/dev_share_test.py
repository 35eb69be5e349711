"""`--dev_share`: how much of a table without a dev file is not trained on; 0 trains on all."""

import json

import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.combining.combine import MIXED_SPLITS
from tests.refusals import raises_code
from tests.runners.own_data_test import NAMES, examples, run, write

SHARES = {
    "a tenth": ([], ["--do_eval"], {"train": 108, "dev": 12}),
    "more": (["--dev_share=0.25"], ["--do_eval"], {"train": 90, "dev": 30}),
    "none": (["--dev_share=0"], [], {"train": 120}),
}


@pytest.mark.parametrize("case", SHARES)
def test_shares(case, tiny_base_folder, tmp_path, capsys):
    flags, actions, expected = SHARES[case]
    folder = write(tmp_path / "data", splits=("train",))
    more = (*NAMES, *flags, *actions, "--do_train", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert examples(capsys.readouterr().out) == expected


def test_a_dev_file_is_read_with_any_share(tiny_base_folder, tmp_path, capsys):
    folder = write(tmp_path / "data", splits=("train", "dev"))
    more = (*NAMES, "--dev_share=0", "--do_train", "--do_eval", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert examples(capsys.readouterr().out) == {"train": 120, "dev": 24}


def test_without_a_dev_set_nothing_is_evaluated(tiny_base_folder, tmp_path):
    """Also not later, when a tenth of the training data would be the dev set."""
    folder = write(tmp_path / "data", splits=("train",))
    error = run(folder, tiny_base_folder, tmp_path / "no", *NAMES, "--dev_share=0", "--do_train",
                "--do_eval")  # fmt: skip
    assert "Leave out --do_eval" in error
    out = tmp_path / "out"
    flags = (*NAMES, "--dev_share=0", "--do_train", "--num_train_epochs=0.2")
    assert run(folder, tiny_base_folder, out, *flags) is None
    assert json.loads((out / "adapter" / "adapter_config.json").read_text())["dev_share"] == 0
    evaluate = ("--do_eval", f"--adapter_dir={out}/adapter")
    error = run(folder, tiny_base_folder, tmp_path / "again", *evaluate)
    assert "dev.tsv" in error and "Leave out --do_eval" in error
    error = run(folder, tiny_base_folder, tmp_path / "again", *evaluate, "--dev_share=0.1")
    assert "--dev_share=0" in error and "training data" in error
    write(folder, splits=("dev",))
    assert run(folder, tiny_base_folder, tmp_path / "again", *evaluate) is None


FOLD = {"fold": {"count": 3, "number": 1, "seed": 0}}
TRAINED = {  # What an adapter records of its split, and the flag that a refusal names.
    "on a fold": (FOLD, "--fold=1"),
    "on several folds": ({"fold": MIXED_SPLITS}, "separate dev file"),
    "on a tenth less": ({"split_seed": 3}, "--split_seed=3"),
    "on a fifth less": ({"dev_share": 0.2}, "--dev_share=0.2"),
}


@pytest.mark.parametrize("case", TRAINED)
def test_a_dev_file_was_not_trained_on_in_any_split(case, tmp_path):
    recorded, refusal = TRAINED[case]
    folder = write(tmp_path / "data", splits=("train",))
    values = {"task_name": "tsv", "data_dir": str(folder), "text_a_column": "first",
              "label_column": "answer", "do_eval": True, "dev_share": 0.1}  # fmt: skip
    config = RunConfig.from_values(Command.CLASSIFIER, values)
    own = {"head": "classification", "regression": False, "inputs": {"texts": 1}}
    saved = SavedAdapter({"task": "tsv", "labels": ["no", "yes"], **own, **recorded}, {})
    runner = ClassificationRunner()
    with raises_code("mismatch", refusal):
        runner.check(config, saved)
    write(folder, splits=("dev",))
    runner.check(config, saved)


def test_an_adapter_records_what_its_training_left_out(tiny_base_folder, tmp_path, caplog):
    """With a dev file nothing, so that no part of the training data is its dev set later."""
    folder, out = write(tmp_path / "data", splits=("train", "dev")), tmp_path / "out"
    flags = (*NAMES, "--do_train", "--num_train_epochs=0.2", "--split_seed=5")
    assert run(folder, tiny_base_folder, out, *flags) is None
    assert "--split_seed=5 has no effect: the data comes with a split" in caplog.text
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert (config["split_seed"], config["dev_share"]) == (None, 0)
    (folder / "dev.tsv").unlink()
    evaluate = ("--do_eval", f"--adapter_dir={out}/adapter")
    assert "dev.tsv" in run(folder, tiny_base_folder, tmp_path / "again", *evaluate)


def test_train_in_python_takes_all_rows(tiny_base_folder, tmp_path):
    trained = abt.train(
        ["a cat", "a dog"] * 8,
        ["yes", "no"] * 8,
        base_model=tiny_base_folder,
        output_dir=tmp_path,
        dev_share=0,
        train_batch_size=8,
        num_train_epochs=1,
        max_seq_length=16,
    )
    assert trained.results == {} and trained("a cat")["label"] in ("yes", "no")
    assert json.loads((tmp_path / "run.json").read_text())["examples"] == {"train": 16}
