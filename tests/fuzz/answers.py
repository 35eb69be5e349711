"""Tables to answer: every row gets its answer, in order, or nothing is written."""

import csv
import gzip
import io
import json
import os

from hypothesis import strategies as st

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.predict import tables as answered
from adapter_bert_tf.predict.columns import text_columns
from tests.fuzz import tables, values
from tests.fuzz.cases import Case

CONFIG = {"task": "tsv", "head": "classification", "inputs": {"texts": 1}, "regression": False}
OUTPUTS = ("out.csv", "out.tsv", "out.jsonl", "out.csv.gz", "out.txt", "asked.csv", "below/out.csv")


@st.composite
def cases(draw):
    """Sound tables in all forms, and tables of anything."""
    form = draw(tables.forms())
    rows = draw(tables.some_rows())
    if draw(st.booleans()):
        form |= {"extension": "jsonl", "header": True}
        content, sound = draw(_objects(rows))
    else:
        content, sound = draw(tables.written(rows, form))
    packed = draw(st.booleans())
    name = f"asked.{form['extension']}{'.gz' if packed else ''}"
    files = {name: gzip.compress(content, mtime=0) if packed else content}
    if packed and draw(st.integers(0, 3)) == 0:
        files, sound = {name: draw(values.edited(files[name]))}, False
    settings = {
        "name": name,
        "output": draw(st.sampled_from(OUTPUTS)),
        "column": draw(st.sampled_from((None, "0", "text", "other", "9"))),
        "texts": [row[0] for row in rows] if sound else None,
        "skip_bad_rows": draw(st.booleans()),
    }
    return Case(files, form | settings)


@st.composite
def _objects(draw, rows):
    lines = [json.dumps(dict(zip(tables.HEADER, row, strict=True))) for row in rows]
    odd = draw(st.lists(values.texts() | st.sampled_from(("[]", '{"text": 1}', "{}")), max_size=2))
    content = "\n".join([*lines, *odd]).encode("utf-8", "replace")
    return content, not odd


def answer(folder, settings):
    """Answers the table; checks what was written against what was asked."""
    seen = []

    def answers_of(found):
        seen.extend(row[0] for row in found)
        return [{"label": f"<{len(row[0])}>", "probabilities": {"a": 0.5}} for row in found]

    output = folder / settings["output"]
    reading = {name: settings[name] for name in ("delimiter", "header", "quoted", "encoding")}
    try:
        count = answered.answer_file(
            str(folder / settings["name"]),
            str(output),
            ["label", "probability_a"],
            lambda names: text_columns(CONFIG, names, settings["column"]),
            answers_of,
            skip_bad_rows=settings["skip_bad_rows"],
            **reading,
        )
    except InputError:
        if output.name != settings["name"]:
            assert not output.exists(), "half a file is left"
        assert not [name for name in os.listdir(folder) if "unfinished" in name]
        raise
    labels = _labels(output, settings)
    assert len(labels) == count
    answered_rows = [label for label in labels if label]
    assert answered_rows == [f"<{len(text)}>" for text in seen]


def _labels(path, settings):
    """What was written as the label of each row."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    if ".jsonl" in path.name:
        rows = [json.loads(line) for line in text.split("\n")[:-1]]
        return [list(row.values())[-2] for row in rows]
    ending = os.path.splitext(path.name.removesuffix(".gz"))[1]
    same = settings["name"].removesuffix(".gz").endswith(ending)
    delimiter = settings["delimiter"] if same else None
    delimiter = {None: "\t" if ".tsv" in path.name else ",", "\\t": "\t"}.get(delimiter, delimiter)
    if ".tsv" in path.name:
        rows = [line.split(delimiter) for line in text.split("\n")[:-1]]
    else:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return [row[-2] for row in rows[bool(settings["header"]) :]]
