"""What changes the digest of the code that decides a training, and what does not."""

import shutil

import pytest

from benchmarks import training_code

CHANGES = {  # (file, what, by what): whether it is other code.
    "a comment": ("training/optimizer.py", "import", "# Said.\nimport", False),
    "a docstring": ("training/optimizer.py", '"""', '"""Said. ', False),
    "an annotation": ("adapters/ops.py", "-> ", "-> int | ", False),
    "a number": ("training/optimizer.py", "epsilon=1e-6", "epsilon=1e-3", True),
    "progress": ("training/progress.py", "5.0", "6.0", False),
    "a card": ("store/card.py", "a BERT adapter", "an adapter", False),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_counts(case, tmp_path):
    file, what, by_what, other = CHANGES[case]
    package = shutil.copytree(training_code.PACKAGE, tmp_path / "package")
    before = (package / file).read_text()
    assert what in before
    (package / file).write_text(before.replace(what, by_what, 1))
    assert (training_code.digest(package) != training_code.digest()) == other


def test_files_of_several_tasks_and_of_one(tmp_path):
    package = shutil.copytree(training_code.PACKAGE, tmp_path / "package")
    for name in training_code.MULTITASK_FILES:
        (package / name).write_text((package / name).read_text() + "\nmore = 1\n")
    alone, all_of_it = training_code.digest(of_several=False), training_code.digest()
    assert alone != all_of_it != training_code.digest(package)
    assert alone == training_code.digest(package, of_several=False)


def test_files_of_tagging(tmp_path):
    package = shutil.copytree(training_code.PACKAGE, tmp_path / "package")
    tagger = package / "heads" / "tagger.py"
    tagger.write_text(tagger.read_text() + "\nmore = 1\n")
    assert training_code.digest(package) == training_code.digest()
    of_tagging = training_code.digest(of_tagging=True)
    assert training_code.digest() != of_tagging != training_code.digest(package, of_tagging=True)


def test_codes_that_were_shown_to_train_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(training_code, "EQUIVALENCES", tmp_path / "alike.jsonl")
    assert training_code.equivalent_codes("a") == {"a"} and training_code.equivalent_codes(
        None
    ) == {None}
    for pair in (("a", "b"), ("c", "d"), ("d", "b"), ("e", "f"), ("a", "d"), ("g", "g")):
        training_code.record_equivalence(pair, ["adapters"])
    assert (
        training_code.equivalent_codes("a")
        == training_code.equivalent_codes("c")
        == {"a", "b", "c", "d"}
    )
    assert training_code.equivalent_codes("e") == {"e", "f"} and training_code.equivalent_codes(
        "g"
    ) == {"g"}
    assert (
        len(training_code.EQUIVALENCES.read_text().splitlines()) == 4
    )  # What was known is not noted.
