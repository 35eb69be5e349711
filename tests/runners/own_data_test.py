"""`--task_name=tsv`: tables of the user's own, as TSV and CSV, by name and by number."""

import gzip
import json
import re

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.data.labels import infer_labels
from adapter_bert_tf.runners.classification.result_files import write_predictions
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.tasks import find_task, own_task
from adapter_bert_tf.tasks.own import format_settings
from tests import support
from tests.runs import base_flags, command, sentence

TSV = ("\t", lambda cell: cell)
CSV = (",", lambda cell: '"' + cell.replace('"', '""') + '"')


def write(
    folder,
    extension="tsv",
    header=True,
    rows=120,
    splits=("train", "dev", "test"),
    label=lambda i: ("no", "yes")[i % 2],
    delimiter=None,
    encoding="utf-8",
):
    """A table that can be learned: the second text says `not` where the label is `yes`."""
    separator, quote = CSV if extension == "csv" else TSV
    separator = delimiter or separator
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for split in splits:
        lines = [["note", "first", "second", "answer"]] if header else []
        for i in range(rows if split == "train" else 24):
            second = sentence(rng) + (" not not" if i % 2 else " red")
            lines.append(["é", sentence(rng), second, label(i)])
        text = "\n".join(separator.join(map(quote, line)) for line in lines) + "\n"
        (folder / f"{split}.{extension}").write_bytes(text.encode(encoding))
    return folder


def examples(printed):
    """Dict from a split to how many examples of it a run has, as its table prints them."""
    return {name: int(n) for name, n in re.findall(r"^  (train|dev|test) +(\d+) ", printed, re.M)}


def run(folder, base, out, *more):
    return command(
        "--task_name=tsv",
        f"--data_dir={folder}",
        *base_flags(base),
        f"--output_dir={out}",
        "--max_seq_length=16",
        "--train_batch_size=8",
        "--learning_rate=1e-2",
        *more,
    )


NAMES = ["--text_a_column=first", "--text_b_column=second", "--label_column=answer"]
NUMBERS = ["--text_a_column=1", "--text_b_column=2", "--label_column=3"]
TABLES = {
    "tsv by name": ({}, NAMES),
    "tsv by number": ({}, NUMBERS),
    "no header": ({"header": False}, [*NUMBERS, "--noheader"]),
    "csv": ({"extension": "csv"}, NAMES),
    "semicolons": ({"delimiter": ";"}, [*NAMES, "--delimiter=;"]),
    "semicolons that are found": ({"delimiter": ";", "extension": "csv"}, NAMES),
    "latin-1": ({"encoding": "latin-1"}, [*NAMES, "--encoding=latin-1"]),
    "no dev file": ({"splits": ("train", "test")}, NAMES),
}


RECORDED = {
    "tab in tsv": ({"extension": "tsv"}, {}),
    "comma in csv": ({"extension": "csv"}, {}),
    "all but the defaults": (
        {"extension": "csv", "delimiter": "\\t", "quoted": False, "encoding": "cp1252"},
        {"delimiter": "\\t", "quoted": False, "encoding": "cp1252"},
    ),
    "as the other extension": (
        {"extension": "tsv", "delimiter": ",", "quoted": True},
        {"delimiter": ",", "quoted": True},
    ),
}


@pytest.mark.parametrize("case", RECORDED)
def test_an_adapter_records_the_format_that_differs_from_the_default(case):
    described, recorded = RECORDED[case]
    task = own_task("0", label="1", **described)
    assert format_settings(task.layouts[0]["train"]) == recorded
    again = own_task("0", label="1", extension=described["extension"], **recorded)
    assert again.layouts == task.layouts


# The others differ from these only in how a file is read.
@pytest.mark.parametrize("case", support.seldom(TABLES, ("tsv by name", "no dev file")))
@pytest.mark.long
def test_any_table(case, tiny_base_folder, tmp_path):
    layout, columns = TABLES[case]
    folder = write(tmp_path / "data", **layout)
    assert (
        run(
            folder,
            tiny_base_folder,
            tmp_path / "out",
            *columns,
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--num_train_epochs=1",
        )
        is None
    )
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["labels"] == ["no", "yes"]
    assert record["examples"] == (
        {"train": 108, "dev": 12, "test": 24}
        if case == "no dev file"
        else {"train": 120, "dev": 24, "test": 24}
    )
    config = json.loads((tmp_path / "out" / "adapter" / "adapter_config.json").read_text())
    assert (config["task"], config["name"]) == ("tsv", "data")  # As its folder is called.
    lines = (tmp_path / "out" / "predictions.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction" and lines[1].split("\t")[1] in ("no", "yes")
    # Labels, columns and format come from the adapter: the training data is not needed any more.
    (folder / f"train.{layout.get('extension', 'tsv')}").unlink()
    assert (
        run(
            folder,
            tiny_base_folder,
            tmp_path / "again",
            "--do_predict",
            f"--adapter_dir={tmp_path}/out/adapter",
        )
        is None
    )
    assert (tmp_path / "again" / "predictions.tsv").read_text().splitlines() == lines


def test_semicolons_are_found_and_said(tiny_base_folder, tmp_path, capsys, caplog):
    folder = write(tmp_path / "data", extension="csv", delimiter=";", splits=("train", "dev"))
    more = (*NAMES, "--do_train", "--do_eval", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert examples(capsys.readouterr().out) == {"train": 120, "dev": 24}
    assert [caplog.text.count(f"{name}.csv: read with ';'") for name in ("train", "dev")] == [1, 1]


def test_objects_are_a_table(tiny_base_folder, tmp_path, capsys):
    lines = [{"answer": i % 2, "first": "the cat", "second": f"a dog {i}"} for i in range(20)]
    (tmp_path / "data").mkdir()
    content = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    (tmp_path / "data" / "train.jsonl.gz").write_bytes(content)
    more = ("--do_train", "--do_eval", "--dry_run")
    error = run(tmp_path / "data", tiny_base_folder, tmp_path / "out", *more)
    assert "train.jsonl is ['answer', 'first', 'second']" in error
    assert run(tmp_path / "data", tiny_base_folder, tmp_path / "out", *NAMES, *more) is None
    assert examples(capsys.readouterr().out) == {"train": 18, "dev": 2}


@pytest.mark.slow
def test_an_adapter_is_called_as_the_user_says(tiny_base_folder, tmp_path, capsys):
    folder, more = write(tmp_path / "data"), [*NAMES, "--do_train", "--num_train_epochs=0.3"]
    for name in ("", "two\nlines", " "):
        error = run(folder, tiny_base_folder, tmp_path / "no", *more, f"--adapter_name={name}")
        assert "--adapter_name must be one line of text" in (error or ""), error
    out = tmp_path / "out"
    assert run(folder, tiny_base_folder, out, *more, "--adapter_name=my reviews") is None
    assert capsys.readouterr().out.endswith(f"Adapter: {out}/adapter\n")
    model = abt.AdapterModel(abt.load_base(tiny_base_folder))
    assert model.load_adapter(out / "adapter") == "my reviews"


@pytest.mark.long
def test_regression_far_from_zero_is_learned_and_reloaded(tiny_base_folder, tmp_path):
    folder = write(tmp_path / "data", label=lambda i: str(1000 + 500 * (i % 2) + i % 7))
    flags = [*NAMES, "--regression", "--do_eval", "--dropout=0"]
    assert (
        run(
            folder,
            tiny_base_folder,
            tmp_path / "out",
            *flags,
            "--do_train",
            "--num_train_epochs=30",
        )
        is None
    )
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["eval"]["eval_spearman"] > 0.7
    assert record["eval"]["eval_loss"] < 0.5 * 250**2  # Half of the variance.
    assert (
        run(
            folder,
            tiny_base_folder,
            tmp_path / "again",
            *flags,
            f"--adapter_dir={tmp_path}/out/adapter",
        )
        is None
    )
    assert (tmp_path / "out" / "eval_results.txt").read_text() == (
        tmp_path / "again" / "eval_results.txt"
    ).read_text()
    head = safetensors.numpy.load_file(tmp_path / "out" / "adapter" / "adapter.safetensors")
    assert head["head/kernel"].shape == (support.CONFIG["hidden_size"], 1)


def test_rows_without_a_label_are_left_out(tiny_base_folder, tmp_path, caplog, capsys):
    folder = write(tmp_path / "data", label=lambda i: ("no", "yes", "")[i % 3])
    more = (*NAMES, "--do_train", "--do_eval", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    printed = capsys.readouterr().out
    assert examples(printed) == {"train": 80, "dev": 16} and "no 40, yes 40" in printed
    assert "left out 40 of 120 rows: no label" in caplog.text


def test_every_row_of_a_test_file_is_answered(tiny_base_folder, tmp_path, caplog):
    """In order, also those without a label or a text; the others are scored."""
    folder = write(tmp_path / "data")
    rows = (folder / "test.tsv").read_text().splitlines()
    rows[3], rows[5] = rows[3].rsplit("\t", 1)[0] + "\t", "\t\t\t"
    (folder / "test.tsv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out"
    more = ("--do_train", "--do_predict", "--num_train_epochs=4", f"--adapter_dir={out}/adapter")
    assert run(folder, tiny_base_folder, out, *NAMES, *more) is None
    answers = (out / "predictions.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[0] for line in answers] == [str(i) for i in range(24)]
    assert "test.tsv: 2 of 24 rows have no label of the task" in caplog.text
    labels = [row.split("\t")[3] for row in rows[1:]]
    said = [line.split("\t")[1] for line in answers]
    right = [label == answer for label, answer in zip(labels, said, strict=True) if label]
    scores = dict(line.split(" = ") for line in (out / "test_metrics.txt").read_text().splitlines())
    assert float(scores["test_accuracy"]) == pytest.approx(np.mean(right)) and len(right) == 22


def test_labels_of_many_digits_are_text():
    labels = ["10", "9", "1" * 5000]
    assert infer_labels(labels) == tuple(sorted(labels))
    assert infer_labels(labels[:2]) == ("9", "10")


def test_labels_that_differ_in_case_are_named(caplog):
    assert infer_labels(["business", "BUSINESS", "arts", "Arts ", "art"]) == tuple(
        sorted(["business", "BUSINESS", "arts", "Arts ", "art"])
    )
    assert "'BUSINESS' and 'business' are different labels" in caplog.text
    assert "'Arts ' and 'arts'" in caplog.text and "'art'" not in caplog.text


def test_a_run_names_labels_that_differ_in_case(tiny_base_folder, tmp_path, caplog):
    folder = write(tmp_path / "data", label=lambda i: ("business", "BUSINESS", "arts")[i % 3])
    arguments = [*NAMES, "--do_train", "--dry_run"]
    assert run(folder, tiny_base_folder, tmp_path / "out", *arguments) is None
    assert "'BUSINESS' and 'business' are different labels" in caplog.text


@pytest.mark.long
def test_a_labelled_test_file_is_scored(tiny_base_folder, tmp_path):
    folder = write(tmp_path / "data")
    arguments = [*NAMES, "--do_train", "--do_predict", "--num_train_epochs=0.2"]
    assert run(folder, tiny_base_folder, tmp_path / "out", *arguments) is None
    assert "test_accuracy" in (tmp_path / "out" / "test_metrics.txt").read_text()
    path = folder / "test.tsv"
    lines = [line.rsplit("\t", 1)[0] for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n\n")
    assert run(folder, tiny_base_folder, tmp_path / "hidden", *arguments) is None
    assert not (tmp_path / "hidden" / "test_metrics.txt").exists()


def test_another_division_is_refused(tiny_base_folder, tmp_path):
    folder = write(tmp_path / "data", splits=("train",))
    assert (
        run(
            folder,
            tiny_base_folder,
            tmp_path / "out",
            *NAMES,
            "--do_train",
            "--num_train_epochs=0.2",
        )
        is None
    )
    error = run(
        folder,
        tiny_base_folder,
        tmp_path / "again",
        *NAMES,
        "--do_eval",
        f"--adapter_dir={tmp_path}/out/adapter",
        "--split_seed=1",
    )
    assert "trained with --split_seed=0" in error


def test_a_few_examples(tiny_base_folder, tmp_path, capsys):
    folder = write(tmp_path / "data")
    more = (*NAMES, "--do_train", "--max_train_examples=20", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert examples(capsys.readouterr().out) == {"train": 20}


def _csv_with_odd_label(folder):
    return write(folder, extension="csv", label=lambda i: ("a\tb", "c")[i % 2])


def _edit(name, change):
    def edit(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))
        return []

    return edit


BAD = {
    "no label column": (
        _edit("train.tsv", lambda b: b.replace(b"answer", b"reply")),
        r"header has no column 'answer'. Received: \['note', 'first'",
    ),
    "class only in dev": (
        _edit("dev.tsv", lambda b: b.replace(b"yes", b"maybe", 1)),
        r"dev.tsv, line 3: unknown label 'maybe'.*training data, are \['no', 'y",
    ),
    "encoding": (
        _edit("train.tsv", lambda b: b.replace("é".encode(), b"\xe9", 1)),
        "byte 0xe9 at offset 25 .line 2. is not utf-8",
    ),
    "one class": (lambda folder: ["--label_column=note"], "only one label: 'é'"),
    "a cell too many": (
        _edit("train.tsv", lambda b: b.replace(b"\tno\n", b"\tin it\tno\n", 1)),
        "line 2: 5 cells under a header of 4",
    ),
    "a name that is another's number": (
        lambda folder: (
            _edit("train.tsv", lambda b: b.replace(b"note", b"3", 1))(folder)
            or ["--label_column=3"]
        ),
        "'3' is the name of column 0 and the number of another",
    ),
    "two kinds of files": (
        lambda folder: (folder / "dev.csv").write_text("x") and [],
        "holds both .csv and .tsv",
    ),
    "a table twice": (
        lambda folder: (folder / "dev.tsv.gz").write_bytes(gzip.compress(b"x")) and [],
        "holds both dev.tsv and dev.tsv.gz",
    ),
    "too few to divide": (
        lambda folder: (
            (folder / "dev.tsv").unlink()
            or _edit("train.tsv", lambda b: b"\n".join(b.split(b"\n")[:3]))(folder)
        ),
        "too few to split",
    ),
    "a tab in a label": (
        lambda folder: [f"--data_dir={_csv_with_odd_label(folder.parent / 'c')}"],
        "must not hold a tab",
    ),
    "few of many": (
        lambda folder: ["--max_train_examples=2", "--label_column=second", "--text_b_column="],
        "dev.tsv, line 2: unknown label",
    ),
    "no columns": (lambda folder: ["--text_a_column="], r"first row of train.tsv is \['note', 'fi"),
    "column out of range": (lambda folder: ["--label_column=9"], "at least 10 columns"),
    "long delimiter": (lambda folder: ["--delimiter=::"], "must be one character"),
    "names without header": (lambda folder: ["--noheader"], "columns are numbers"),
    "text as score": (lambda folder: ["--regression"], "score must be a number"),
    "a text that is the label": (
        lambda folder: ["--text_b_column=answer"],
        "must be different columns",
    ),
    "one text twice": (
        lambda folder: ["--text_a_column=1", "--text_b_column=first"],
        "must be different columns",
    ),
    "two columns of one name": (
        _edit("train.tsv", lambda b: b.replace(b"note", b"answer", 1)),
        "2 columns.* 'answer'",
    ),
    "a first row that is no header": (
        lambda folder: (
            _edit("train.tsv", lambda b: b.split(b"\n", 1)[1])(folder)
            or ["--text_a_column=1", "--text_b_column=2", "--label_column=3"]
        ),
        "line 1: the header has 'no' .*--noheader",
    ),
    "a first row that is no header, in one file": (
        lambda folder: (
            _edit("dev.tsv", lambda b: b.split(b"\n", 1)[1])(folder)
            or ["--text_a_column=1", "--text_b_column=2", "--label_column=3"]
        ),
        r"dev.tsv.*line 1: the header has 'no' ",
    ),
    "a first row that is no header, with scores": (
        lambda folder: [
            f"--data_dir={write(folder.parent / 's', header=False, label=str)}",
            "--text_a_column=1",
            "--text_b_column=2",
            "--label_column=3",
            "--regression",
        ],
        "line 1: the header has '0' ",
    ),
    "a score beyond all floats": (
        lambda folder: [
            f"--data_dir={write(folder.parent / 's', label=lambda i: ('1', '1e39')[i % 2])}",
            "--regression",
        ],
        "line 3: the score must be a number, and at most 1e.30. Received: '1e39'",
    ),
    "a score of many digits": (
        lambda folder: [
            f"--data_dir={write(folder.parent / 's', label=lambda i: '9' * 5000)}",
            "--regression",
        ],
        r"line 2: the score must be a number.* Received: '99999.{,200}$",
    ),
    "a codec that is no encoding": (
        lambda folder: ["--encoding=base64"],
        "Unknown --encoding 'bas",
    ),
    "a name that none has": (lambda folder: ["--encoding=a\0b"], "Unknown --encoding 'a"),
    "no data": (lambda folder: ["--data_dir="], "needs --data_dir"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, tiny_base_folder, tmp_path):
    edit, message = BAD[case]
    folder = write(tmp_path / "data")
    more = edit(folder)
    error = run(
        folder, tiny_base_folder, tmp_path / "out", *NAMES, "--do_train", "--do_eval", *more
    )
    assert error and error.startswith("error: ")

    assert re.search(message, error, re.S), error
    assert not (tmp_path / "out").exists()


def test_an_empty_text_is_counted(tiny_base_folder, tmp_path, caplog):
    folder = write(tmp_path / "data", rows=16)
    path = folder / "train.tsv"
    first, second, *rest = path.read_text().split("\n")
    cells = second.split("\t")
    path.write_text("\n".join([first, "\t".join([cells[0], "", *cells[2:]]), *rest]))
    more = (*NAMES, "--do_train", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert "1 of 16 examples of train have an empty text" in caplog.text


def _lone(folder):
    """`reviews.csv` alone in a folder, and its path."""
    write(folder, extension="csv", splits=("train",))
    return (folder / "train.csv").rename(folder / "reviews.csv")


def test_a_table_of_any_name_alone_in_its_folder_is_found(tiny_base_folder, tmp_path, capsys):
    _lone(tmp_path / "data")
    more = (*NAMES, "--do_train", "--do_eval", "--dry_run")
    assert run(tmp_path / "data", tiny_base_folder, tmp_path / "out", *more) is None
    assert examples(capsys.readouterr().out) == {"train": 108, "dev": 12}
    (tmp_path / "data" / "others.csv").write_text("x\n")  # Then no one knows which.
    error = run(tmp_path / "data", tiny_base_folder, tmp_path / "two", *more)
    assert "No data file" in error and "found ['others.csv', 'reviews.csv']" in error


def test_a_development_set_that_is_called_otherwise_is_named(tiny_base_folder, tmp_path, caplog):
    folder = write(tmp_path / "data", splits=("train", "validation"))
    more = (*NAMES, "--do_train", "--do_eval", "--num_train_epochs=1", "--dry_run")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    said = f"{folder}/validation.tsv is not read: a development set must be named dev.tsv."
    assert caplog.text.count(said) == 1 and "No dev file" in caplog.text
    caplog.clear()
    (folder / "validation.tsv").rename(folder / "dev.tsv")
    assert run(folder, tiny_base_folder, tmp_path / "out", *more) is None
    assert "is not read" not in caplog.text


def test_a_column_by_number_that_is_called_otherwise_is_named(tiny_base_folder, tmp_path, caplog):
    folder = write(tmp_path / "data", splits=("train", "dev"))
    text = (folder / "dev.tsv").read_text()
    (folder / "dev.tsv").write_text(text.replace("first\tsecond", "second\tfirst", 1))
    more = ("--label_column=3", "--do_train", "--do_eval", "--num_train_epochs=1", "--dry_run")
    names = (["--text_a_column=1"], ["--text_a_column=first"])
    for columns, said in zip(names, (1, 0), strict=True):
        caplog.clear()
        assert run(folder, tiny_base_folder, tmp_path / "out", *more, *columns) is None
        found = caplog.text.count("column 1 is 'first' in train.tsv, 'second' in dev.tsv. Is it")
        assert found == said and "column 3" not in caplog.text


RAGGED = {4: "é,only,three", 7: "é,one,two, too,yes", 9: "é"}


def _ragged(path, lines=RAGGED):
    rows = path.read_text().splitlines()
    for line, text in lines.items():
        rows[line - 1] = text
    path.write_text("\n".join(rows) + "\n")


def test_ragged_rows_are_named_and_counted(tiny_base_folder, tmp_path, caplog, capsys):
    _ragged(_lone(tmp_path / "data"))
    more = (*NAMES, "--do_train", "--dry_run")
    error = run(tmp_path / "data", tiny_base_folder, tmp_path / "out", *more)
    assert "reviews.csv, line 4: expected at least 4 columns" in error
    assert "3 rows are malformed: lines 4, 7, 9. Correct this, or pass --skip_bad_rows" in error
    more = (*more, "--skip_bad_rows")
    assert run(tmp_path / "data", tiny_base_folder, tmp_path / "out", *more) is None
    assert examples(capsys.readouterr().out)["train"] == 105  # And 12 of dev.
    assert "left out 2 of 120 rows: too few cells (lines 4, 9)" in caplog.text
    assert "left out 1 of 120 rows: too many cells (line 7)" in caplog.text


@pytest.mark.long
def test_ragged_rows_of_a_test_file_are_answered(tiny_base_folder, tmp_path, caplog):
    folder = write(tmp_path / "data", extension="csv")
    _ragged(folder / "test.csv")
    more = (*NAMES, "--do_train", "--do_predict", "--num_train_epochs=1")
    error = run(folder, tiny_base_folder, tmp_path / "out", *more)
    assert "test.csv, line 4: expected at least 4" in error
    assert run(folder, tiny_base_folder, tmp_path / "out", *more, "--skip_bad_rows") is None
    assert len((tmp_path / "out" / "test_results.tsv").read_text().splitlines()) == 24
    assert (
        "3 of 24 rows are answered as if they had no text: too few cells or too many" in caplog.text
    )


def test_spaces_around_the_names_of_columns(tiny_base_folder, tmp_path):
    path = _lone(tmp_path / "data")
    first, rest = path.read_text().split("\n", 1)
    path.write_text('"note ", first," second ",answer \n' + rest)
    assert first == '"note","first","second","answer"'
    more = (*NAMES, "--do_train", "--dry_run")
    assert run(tmp_path / "data", tiny_base_folder, tmp_path / "out", *more) is None


@pytest.mark.slow
def test_two_tables_live_side_by_side(tiny_base_folder, tmp_path):
    for name in ("reviews", "letters"):
        write(tmp_path / name, splits=("train",))
        more = (*NAMES, "--do_train", "--num_train_epochs=1")
        assert run(tmp_path / name, tiny_base_folder, tmp_path / "out" / name, *more) is None
    base = abt.load_base(tiny_base_folder)
    model = abt.AdapterModel(base)
    folders = [tmp_path / "out" / name / "adapter" for name in ("reviews", "letters")]
    assert [model.load_adapter(folder) for folder in folders] == ["reviews", "letters"]
    join(list(map(str, folders)), base, str(tmp_path / "served"))
    served = tf.saved_model.load(str(tmp_path / "served"))
    answer = served.signatures["tasks"](
        task=tf.constant(["letters", "reviews"]),
        text_a=tf.constant(["a cat"] * 2),
        text_b=tf.constant(["a dog"] * 2),
    )
    assert set(answer["label"].numpy()) <= {b"no", b"yes"}


@pytest.mark.slow
def test_an_export_needs_no_data(tiny_base_folder, tmp_path):
    folder = write(tmp_path / "data", splits=("train",))
    assert run(folder, tiny_base_folder, tmp_path / "out", *NAMES, "--do_train",
               "--num_train_epochs=1") is None  # fmt: skip
    words = ("--task_name=tsv", *base_flags(tiny_base_folder),
             f"--output_dir={tmp_path / 'served'}",
             f"--adapter_dir={tmp_path / 'out' / 'adapter'}", "--do_export")  # fmt: skip
    assert command(*words) is None
    assert (tmp_path / "served" / "saved_model" / "saved_model.pb").exists()


COLUMNS = {  # Labels: what the run's line says of them.
    ("no", "yes"): "test_results.tsv (columns: no, yes)\n",
    tuple(map(str, range(22))): ", 18, 19 and 2 more)\n",
    ("x" * 99, "a\tb"): f"(columns: {'x' * 24}, a\\tb)\n",
}


@pytest.mark.parametrize("labels", COLUMNS)
def test_the_columns_of_probabilities_are_named(labels, tmp_path, capsys):
    predicted = np.eye(len(labels), dtype="f4")[:1]
    task = own_task("text", label="label").with_labels(labels)
    write_predictions(str(tmp_path), task, "test", ["0"], predicted)
    assert capsys.readouterr().out.endswith(COLUMNS[labels])
    (row,) = (tmp_path / "test_results.tsv").read_text().splitlines()
    assert len(row.split("\t")) == len(labels)  # As adapter-bert writes it, without a header.


@pytest.mark.parametrize(
    ("task", "written"),
    [
        (own_task("text", label="label", task_type="regression"), ["7.8e-05", "-2", "1234.568"]),
        (find_task("sts-b"), ["0.000", "0.000", "5.000"]),  # As GLUE takes them, within its range.
    ],
    ids=["own", "sts-b"],
)
def test_scores_keep_their_digits(task, written, tmp_path, capsys):
    scores = np.array([7.8e-5, -2, 1234.5678], "f4")
    write_predictions(str(tmp_path), task, "test", range(3), scores)
    assert "columns" not in capsys.readouterr().out
    lines = (tmp_path / f"{task.submission('test')}.tsv").read_text().splitlines()
    assert lines[1:] == [f"{i}\t{score}" for i, score in enumerate(written)]
