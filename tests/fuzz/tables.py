"""Tables of the user's own: how they are written, and what is read of them."""

import csv
import io

from hypothesis import strategies as st

from adapter_bert_tf.data.examples import limit, read_examples
from adapter_bert_tf.data.labels import infer_labels, require_one_line
from adapter_bert_tf.task_types import chosen_type
from adapter_bert_tf.tasks.own import own_task
from tests.fuzz import values
from tests.fuzz.cases import Case

ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252", "utf-7", "shift_jis", "idna")
HEADER = ("text", "other", "label")


@st.composite
def cases(draw):
    """Sound tables in many forms, and tables of anything."""
    form = draw(forms())
    names = draw(st.sampled_from((("test",), ("train", "dev"), ("train",), ("train", "test"))))
    files, expected = {}, {}
    for split in names:
        rows = draw(some_rows())
        content, sound = draw(written(rows, form))
        files[f"{split}.{form['extension']}"] = content
        if sound and split == "test":
            expected[split] = rows
    form |= {"roles": names, "expected": expected}
    return Case(files, form)


@st.composite
def forms(draw):
    """How a table is written, and what one says of it."""
    header = draw(st.booleans())
    columns = HEADER if header and draw(st.booleans()) else ("0", "1", "2")
    if draw(st.integers(0, 4)) == 0:
        columns = draw(st.tuples(*[values.texts() | st.sampled_from(("0", "text"))] * 3))
    return {
        "columns": columns,
        "extension": draw(st.sampled_from(("tsv", "csv"))),
        "delimiter": draw(st.none() | st.sampled_from((",", ";", "\t", "|", "a", " ", "\\t", ""))),
        "header": header,
        "quoted": draw(st.none() | st.booleans()),
        "encoding": draw(st.just("utf-8") | st.sampled_from(ENCODINGS)),
        "regression": draw(st.integers(0, 3)) == 0,
    }


def some_rows():
    """Strategy of rows of two texts and a label."""
    label = st.sampled_from(("0", "1", "a", "A", "a ")) | values.texts() | st.just("1.5")
    row = st.tuples(values.texts(), values.texts(), label)
    few = st.lists(row, max_size=8)
    plain = st.tuples(st.sampled_from("abcdef"), st.just("x"), st.sampled_from(("0", "1")))
    return few | st.lists(plain, min_size=10, max_size=40)


@st.composite
def written(draw, rows, form):
    """(bytes of a table, whether it says just these rows)."""
    delimiter = form["delimiter"] or ("," if form["extension"] == "csv" else "\t")
    delimiter = "\t" if delimiter == "\\t" else delimiter or ","
    quoted = form["extension"] == "csv" if form["quoted"] is None else form["quoted"]
    lines = [*([HEADER] if form["header"] else []), *rows]
    if draw(st.integers(0, 5)) == 0:
        lines = [*lines, *draw(st.lists(st.lists(values.texts(), max_size=5), max_size=2))]
        rows = None
    end = draw(st.sampled_from(("\n", "\r\n")))
    text = _quoted(lines, delimiter, end) if quoted else _plain(lines, delimiter, end)
    content = text.encode(draw(st.just("utf-8") | st.sampled_from(ENCODINGS[:5])), "replace")
    if draw(st.integers(0, 5)) == 0:
        return draw(values.edited(content)), False
    return content, rows is not None and quoted and content == text.encode("utf-8", "replace")


def _quoted(lines, delimiter, end):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
        lines
    )
    return text.getvalue()


def _plain(lines, delimiter, end):
    return "".join(delimiter.join(line) + end for line in lines)


def read(folder, settings):
    """Reads the splits, and the labels; what was written quoted must come back, row by row."""
    text_a, text_b, label = settings["columns"]
    names = ("extension", "delimiter", "header", "quoted", "encoding")
    kind = chosen_type(settings)
    described = {name: settings[name] for name in names}
    task = own_task(text_a, text_b, label, **described, task_type=kind.name)
    found = read_examples(task, str(folder), settings["roles"], cells=kind)
    for split, examples in found.items():
        places = [line for _, line in examples.places]
        assert split != "test" or places == sorted(places)
        _check_labels(task, kind, split, examples)
    _same(settings, found)


def _check_labels(task, kind, split, examples):
    labels = zip(examples.labels or [], examples.places, strict=False)
    known = [(label, place) for label, place in labels if label is not None]
    if not known:
        return
    if kind.labels is None:
        labels, places = zip(*known, strict=True)
        require_one_line(labels, places)
        task = task.with_labels(infer_labels(labels))
    assert len(kind.encode(task, examples)) == len(examples)
    if split != "test":
        assert len(limit(examples, 5, 0, kind)) <= len(examples)


def _same(settings, found):
    standard = settings["columns"] in (HEADER, ("0", "1", "2")) and settings["encoding"] == "utf-8"
    for split, rows in settings["expected"].items():
        if standard and split in found:
            assert found[split].texts() == [_as_read(row[:2]) for row in rows]


def _as_read(cells):
    return tuple(cell.encode("utf-8", "replace").decode() for cell in cells)
