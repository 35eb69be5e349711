"""Whether two versions of the code train alike is seen by what they leave."""

import shutil

import pytest

from adapter_bert_tf.config.sections.model import MULTITASK_TUNINGS
from adapter_bert_tf.config.settings import BY_NAME
from benchmarks import runner, same_training
from tests.runs import base_flags

CHANGES = {  # (file, what, by what): the cases that differ.
    "what is said": ("training/progress.py", "examples/s", "examples a second", []),
    "what is computed": ("training/optimizer.py", "epsilon=1e-6", "epsilon=1e-3", ["adapters"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHANGES)
def test_another_version_of_the_code(case, tiny_base_folder, tmp_path):
    file, what, by_what, expected = CHANGES[case]
    shutil.copytree(runner.ROOT / "adapter_bert_tf", tmp_path / "adapter_bert_tf")
    shutil.copy(runner.ROOT / "run_classifier.py", tmp_path)
    path = tmp_path / "adapter_bert_tf" / file
    assert what in path.read_text()
    path.write_text(path.read_text().replace(what, by_what, 1))
    words = [*same_training.ONE_TASK["adapters"], *base_flags(tiny_base_folder)]
    words += ["--max_seq_length=24"]
    assert same_training.find_differences({"adapters": words}, tmp_path) == expected


def test_every_method_has_a_case():
    shown = {word.partition("=")[2] for case in same_training.CASES.values() for word in case
             if word.startswith("--tuning=")}  # fmt: skip
    others = {"adapters", "fusion", "multitask_layer_norm"}  # The default; parts of others.
    assert shown | others == {*BY_NAME["tuning"].choices, *MULTITASK_TUNINGS}
    assert not shown & others
