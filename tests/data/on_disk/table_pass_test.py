"""The pass over a table: the rows, labels and warnings of the path in memory."""

import os
import pathlib

import numpy as np
import pytest

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.on_disk import table_pass
from adapter_bert_tf.data.on_disk.dev_rows import DevRows
from adapter_bert_tf.data.on_disk.stored_table import FILES, Scores
from adapter_bert_tf.data.tables import blocks
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.tasks import own_task
from tests.data.on_disk import tables
from tests.refusals import raises_code

LENGTH = 16


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), LENGTH)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 7)


def rows_of(table, task):
    numbers = np.arange(len(table))
    entries = table.entries(numbers)
    ids, types, mask = table.inputs(entries, LENGTH)
    labels = tables.training_rows(table, task).labels(entries["label"])
    sizes = mask.sum(1)
    return [
        (a[:n].tolist(), b[:n].tolist(), np.ravel(label).tolist())
        for a, b, n, label in zip(ids, types, sizes, labels, strict=True)
    ]


def rows_in_memory(features):
    labels = [np.ravel(label).tolist() for label in features.labels.numpy()]
    return list(zip(features.ids.to_list(), features.types.to_list(), labels, strict=True))


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("kind", tables.LABELS)
def test_the_rows_are_those_in_memory_in_the_same_order(kind, pairs, encoder, tmp_path):
    task = tables.write(tmp_path, kind=kind, pairs=pairs)
    features, task = tables.in_memory(tmp_path, task, encoder)
    table = tables.stored(tmp_path, task, encoder, tmp_path / "cache")
    assert rows_of(table, task) == rows_in_memory(features)
    facts = table.facts
    assert facts.count == len(features)
    assert (facts.pieces, facts.longest) == (features.lengths.sum(), features.lengths.max())
    assert facts.cut == features.cut.sum()
    assert facts.unknown / facts.pieces == pytest.approx(encoder.unknown_share(features.ids))
    if kind == "regression":
        scores = features.labels.numpy()
        assert (facts.scores.lowest, facts.scores.highest) == (scores.min(), scores.max())
        assert facts.scores.mean == pytest.approx(scores.mean())
        assert facts.scores.deviation == pytest.approx(scores.std())


def test_scores_far_from_zero_keep_their_deviation():
    values = (1e6 + np.array([0, 1, 2, 3, 4, 5])).astype(np.float32)
    scores = Scores().with_more(values[:2]).with_more(values[:0]).with_more(values[2:])
    assert scores.mean == 1e6 + 2.5 and scores.deviation == pytest.approx(values.std())


def fail(*_):
    raise AssertionError("The rows are written again.")


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "record", "index"])
def test_damaged_files_are_written_again(damage, encoder, tmp_path, monkeypatch):
    task = tables.write(tmp_path)
    _, task = tables.in_memory(tmp_path, task, encoder)
    table = tables.stored(tmp_path, task, encoder, tmp_path / "cache")
    expected = rows_of(table, task)
    with monkeypatch.context() as patched:
        patched.setattr(table_pass.TablePass, "write", fail)
        again = tables.stored(tmp_path, task, encoder, tmp_path / "cache")
        assert again == table and rows_of(again, task) == expected
    path = pathlib.Path(table.index_path if damage == "index" else table.ids_path)
    if damage == "record":
        path = path.parent / "rows.json"
        path.write_text("{}")
    elif damage == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + (b"" if damage == "cut" else b"\x01"))
    again = tables.stored(tmp_path, task, encoder, tmp_path / "cache")
    assert rows_of(again, task) == expected
    left = {name for name in os.listdir(path.parent) if FILES.fullmatch(name)}
    assert left == set(map(os.path.basename, again.paths))


def test_a_table_that_becomes_shorter_is_reported(encoder, tmp_path):
    task = tables.write(tmp_path)
    table = tables.stored(tmp_path, task, encoder, tmp_path / "cache")
    os.truncate(table.ids_path, 10)
    with raises_code("damaged", table.ids_path):
        table.inputs(table.entries(np.array([30])), LENGTH)


def test_a_full_disk_is_one_message_and_leaves_nothing(encoder, tmp_path, monkeypatch):
    task = tables.write(tmp_path)

    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("adapter_bert_tf.data.on_disk.cache.DigestedFile.write", full)
    with raises_code("unavailable", "features_dir"):
        tables.stored(tmp_path, task, encoder, tmp_path / "cache")
    left = [name for _, _, names in os.walk(tmp_path / "cache") for name in names]
    assert not [name for name in left if FILES.fullmatch(name)]


WRONG = {
    "a short row": ("a\tlabel\nx\t1\ny\nz\t2\n", "line 3", "invalid"),
    "no rows": ("a\tlabel\n", "has no examples", "invalid"),
    "no label anywhere": ("a\tlabel\nx\t\ny\t\n", "has no examples", "invalid"),
    "no such column": ("a\tb\nx\t1\n", "no column 'label'", "invalid"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_refused_as_in_memory(case, encoder, tmp_path):
    content, message, _ = WRONG[case]
    (tmp_path / "train.tsv").write_text(content)
    task = own_task("a", label="label")
    with pytest.raises(Exception, match=message) as here:
        tables.in_memory(tmp_path, task, encoder)
    with pytest.raises(type(here.value), match=message):
        tables.stored(tmp_path, task, encoder, tmp_path / "cache")


ODD = "a\tlabel\nx\tone\n\ny\t\nz\ttwo\tmore\n \ttwo\n" + "red\tone\n" * 20 + '"a ""b"""\tone\n'


def test_the_warnings_are_those_in_memory(encoder, tmp_path, caplog):
    (tmp_path / "train.tsv").write_text(ODD)
    task = own_task("a", label="label", skip_bad_rows=True)
    _, task = tables.in_memory(tmp_path, task, encoder)
    expected = [record.getMessage() for record in caplog.records]
    facts = tables.stored(tmp_path, task, encoder, tmp_path / "cache").facts
    *warnings, empty = facts.warnings
    assert warnings == expected and len(expected) == 4
    assert empty.startswith("1 of 23 examples of train have an empty text")
    assert empty.endswith("line 6.")


def test_the_dev_set_is_a_share_of_the_texts(encoder, tmp_path):
    task = tables.write(tmp_path, rows=300, pairs=False)
    _, task = tables.in_memory(tmp_path, task, encoder)
    drawn = [
        tables.stored(tmp_path, task, encoder, tmp_path / "cache", DevRows(0.2, seed), seed)
        for seed in (0, 1)
    ]
    for table in drawn:
        dev = table.facts.dev_examples()
        assert len(table) + len(dev) == 300 and 30 < len(dev) < 90
    first, second = (table.facts.dev_examples().text_a for table in drawn)
    assert set(first) != set(second)


def test_equal_texts_stay_together_and_the_most_are_kept():
    rows = [(f"text {i % 100}", None, "a", ("t", i)) for i in range(1000)]
    for most in (1000, 35):
        dev = DevRows(0.5, 3, most)
        train = [row for part in (rows[:90], rows[90:]) for row in dev.divide(part)]
        drawn = dev.drawn()
        assert sorted(train + drawn) == sorted(rows) and len(drawn) <= most
        assert {row[0] for row in train}.isdisjoint(row[0] for row in drawn)
        other = DevRows(0.5, 3, most)
        other.divide(rows[::-1])
        assert sorted(other.drawn()) == sorted(drawn)
        assert len(drawn) == 30 or most == 1000


def test_a_table_too_small_to_split_is_refused(encoder, tmp_path):
    task = tables.write(tmp_path, rows=3)
    with pytest.raises(Exception, match="too few to split"):
        tables.stored(tmp_path, task, encoder, tmp_path / "cache", DevRows(0.0001, 0))


def test_too_many_labels_are_refused(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(table_pass, "MOST_LABELS", 2)
    task = tables.write(tmp_path)
    with pytest.raises(Exception, match="more than 2 different labels"):
        tables.stored(tmp_path, task, encoder, tmp_path / "cache")
