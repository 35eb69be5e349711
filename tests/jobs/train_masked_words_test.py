"""`abt.train(task="masked_words")`: plain text as lists or as files."""

import json
import math
import pathlib

import numpy as np
import pandas
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf import storage
from adapter_bert_tf.data.plain_text.files import LONGEST_TEXT, read_texts
from adapter_bert_tf.jobs import python_plain_text
from adapter_bert_tf.jobs.python_data import Given
from tests import processes
from tests.refusals import raises_code
from tests.runs import base_flags

SMALL = {"max_seq_length": 16, "train_batch_size": 8, "report": False, "num_train_epochs": 1}
SENTENCES = ["the cat sat on the mat .", "a dog ran in the house .", "we walk in the rain again ."]
TEXTS = [SENTENCES[i] for i in np.random.default_rng(0).integers(0, 3, 90)]


def train(*texts, base, **options):
    return abt.train(*texts, task="masked_words", base_model=base, **SMALL, **options)


@pytest.fixture(scope="module")
def trained(tiny_base_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked_words")
    return train(TEXTS, base=tiny_base_folder, dev=SENTENCES, output_dir=folder / "out")


def test_it_is_evaluated_fills_masks_and_is_saved(trained, tiny_base_folder, tmp_path):
    scores = trained.results
    assert math.isclose(scores["eval_perplexity"], math.exp(scores["eval_loss"]))
    answer = trained("the cat [MASK] on the mat .")
    assert len(answer["words"][0]) == 5 and trained.labels() == []
    trained.save(tmp_path / "adapter")
    again = abt.Predictor(tmp_path / "adapter", base=tiny_base_folder)
    assert again("the cat [MASK] on the mat .") == answer
    with raises_code("unsupported", "SavedModel"):
        trained.export(tmp_path / "served")


def test_files_are_the_same_text(trained, tiny_base_folder, tmp_path):
    """And the command evaluates what Python trained."""
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:40]))
    (tmp_path / "b.txt").write_text("\n".join(TEXTS[40:]))
    (tmp_path / "dev.txt").write_text("\n".join(SENTENCES))
    files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    read = train(
        base=tiny_base_folder,
        text_files=files,
        dev_files=tmp_path / "dev.txt",
        output_dir=tmp_path / "out",
    )
    assert read.results == pytest.approx(trained.results, rel=1e-5)
    flags = ["--nodo_train", f"--dev_files={tmp_path}/dev.txt", "--noreport"]
    flags += [f"--adapter_dir={trained.output_dir}/adapter", f"--output_dir={tmp_path}/applied"]
    done = processes.run(["python", "run_adapt.py", *base_flags(tiny_base_folder), *flags])
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "applied" / "run.json").read_text())
    assert record["eval"] == pytest.approx(trained.results, rel=1e-5)


def test_the_same_call_again_finds_itself_done(trained, tiny_base_folder, capsys):
    train(TEXTS, base=tiny_base_folder, dev=SENTENCES, output_dir=trained.output_dir)
    assert "holds the results of this very run" in capsys.readouterr().out


def test_a_share_of_a_list_is_the_dev_set(tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    task = train(
        pandas.Series(TEXTS), base=tiny_base_folder, dev_share=0.2, output_dir=out,
        whole_word_masking=True, mask_share=0.3,
    )  # fmt: skip
    examples = json.loads((out / "run.json").read_text())["examples"]
    assert 0.1 < examples["dev"] / sum(examples.values()) < 0.3 and task.results


def test_each_text_of_a_list_is_one_text_of_the_file(tmp_path):
    texts = ["a\nb\r\nc", "", "d\0e", "f\ud800"]
    data = python_plain_text.data_of(Given(texts, None, None, None, (None, None)), {})
    assert data.paths == {"text_files": "text.txt"} and data.settings == {}
    path = str(tmp_path / "text.txt")
    storage.write_bytes(path, data.files["text.txt"])
    assert list(read_texts([path])) == [b"a b\r c", b"de", b"f?"]


MISSING = pandas.Series(["a", None])  # pandas 2 keeps None, pandas 3 makes it NaN.
REFUSED = {
    "labels": ((TEXTS, ["a"] * 90), {}, "conflict: labels"),
    "second texts": ((TEXTS, None, TEXTS), {}, "conflict: others"),
    "one text": (("the cat",), {}, "invalid: 'the cat'"),
    "a number": ((["a", 1],), {}, "invalid: at 1: 1"),
    "words": (([["the", "cat"]],), {}, "invalid: at 0: ['the', 'cat']"),
    "a missing text": ((MISSING,), {}, f"invalid: at 1: {MISSING[1]}"),
    "a frame": ((pandas.DataFrame({"a": TEXTS}),), {}, "invalid: list of texts"),
    "a long text": ((["a", "a" * (LONGEST_TEXT + 1)],), {}, "invalid: at 1: 1,048,577"),
    "a dev of pairs": ((TEXTS,), {"dev": (TEXTS, TEXTS)}, "invalid: dev: "),
    "no text": ((), {}, "missing: text_files"),
    "no files": ((), {"text_files": []}, "missing: text_files"),
    "texts twice": ((TEXTS,), {"text_files": "a.txt"}, "conflict: texts or text_files"),
    "dev twice": ((TEXTS,), {"dev": TEXTS, "dev_files": "a.txt"}, "conflict: dev or dev_files"),
    "paragraphs of a list": ((TEXTS,), {"text_unit": "paragraph"}, "conflict: text_unit"),
    "a missing file": ((), {"text_files": "none.txt"}, "not_found: 'none.txt'"),
    "options of tables": ((TEXTS,), {"multi_label": True}, "invalid: 'multi_label'"),
    "empty texts": ((["", " "],), {}, "damaged: no text"),
    "too little": ((["a cat"],), {}, "invalid: two are needed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, tiny_base_folder, tmp_path):
    texts, options, message = REFUSED[case]
    with raises_code(message) as raised:
        train(*texts, base=tiny_base_folder, output_dir=tmp_path / "out", **options)
    assert "--" not in str(raised.value)
    assert not (tmp_path / "out" / "adapter").exists()


def test_the_output_is_not_in_the_text(tiny_base_folder, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    with raises_code("conflict", "output_dir", "separate folders"):
        train(base=tiny_base_folder, text_files=tmp_path, output_dir=tmp_path / "out")
    assert not [path for path in pathlib.Path(tmp_path / "out").rglob("*") if path.is_file()]
