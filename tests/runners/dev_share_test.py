"""`--dev_share`: how much of a table without a dev file is not trained on; 0 trains on all."""

import json

import pytest

import adapter_bert_tf as abt
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
