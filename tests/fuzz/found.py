"""What was found: each row stays, and holds the property since."""

from tests import support
from tests.fuzz.adapters import changed, with_header
from tests.fuzz.bases import with_index
from tests.fuzz.cases import Case, Link
from tests.fuzz.plain_text import without_counts
from tests.fuzz.questions import counted
from tests.fuzz.yamls import TASKS

TABLE = {
    "columns": ("0", "1", "2"),
    "extension": "tsv",
    "delimiter": None,
    "header": False,
    "quoted": None,
    "encoding": "utf-8",
    "regression": True,
    "roles": ("test",),
    "expected": {},
}
LOCK = (
    b'{"host": "another", "machine": "another 0 0", "pid": 1, "process": "1", "since": 1.0, '
    b'"beat": 1.0, "id": "0"}'
)
ASKED = {
    "delimiter": None,
    "header": True,
    "quoted": None,
    "encoding": "utf-8",
    "output": "out.csv",
    "column": "0",
    "skip_bad_rows": True,
}
# A name: the kind and the case.
FOUND = {
    "an encoding that wants a mark": (
        "tables to answer",
        Case({"asked.tsv": b"\t\t0\n"}, ASKED | {"name": "asked.tsv", "encoding": "utf-16"}),
    ),
    "a row that is an empty object": (
        "tables to answer",
        Case({"asked.jsonl": b'{"text": "a"}\n{}\n'}, ASKED | {"name": "asked.jsonl"}),
    ),
    "a carriage return in a cell": (
        "tables to answer",
        Case({"asked.jsonl": b'{"text": "", "other": "\\r"}'}, ASKED | {"name": "asked.jsonl"}),
    ),
    "columns of nothing": (
        "tables",
        Case({"test.tsv": b"\0"}, TABLE | {"columns": ("", "", "")}),
    ),
    "a column of 5,000 digits": (
        "tables",
        Case({"test.tsv": b"a\tb\n"}, TABLE | {"columns": ("9" * 5000, "1", "2")}),
    ),
    "a header of 5,000 digits": (
        "tables",
        Case(
            {"test.tsv": b"a\tb\nc\td\n"}, TABLE | {"columns": ("9" * 5000, "", ""), "header": True}
        ),
    ),
    "questions of 5,000 digits": ("questions", Case({"questions.json": b"9" * 5000})),
    "an id that forges a line": (
        "questions",
        Case(
            {
                "questions.json": b'{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": '
                b'"\\u001b[2J", "question": "x", "answers": '
                b'[{"text": "b", "answer_start": 0}]}]}]}]}'
            }
        ),
    ),
    "a value of a sweep of 3,000 letters": (
        "sweeps",
        Case({"flags.yaml": b'{"learning_rate": "%s"}' % (b"x" * 3000)}),
    ),
    "a setting too long for a folder": (
        "sweeps",
        Case({"flags.yaml": b"adapter: " + b"x" * 300}),
    ),
    "flags of 900 letters without values": (
        "sweeps",
        Case({"flags.yaml": b"".join(b"%s: []\n" % (name * 900) for name in (b"x", b"y", b"z"))}),
    ),
    "a task with the name of a folder above": (
        "task lists",
        Case(TASKS | {"tasks.yaml": b'{"../b": {"text_a_column": false}}'}),
    ),
    "a folder in the place of a note": (
        "windows kept",
        Case({"fc458e6ff9a1e3f7/done.json": None}),
    ),
    "a folder in the place of windows": (
        "windows kept",
        Case(
            {
                "fc458e6ff9a1e3f7/done.json": b'{"count": 1, "name": "a", "sha256": []}',
                **{f"fc458e6ff9a1e3f7/a-{i:02d}.tfrecord": None for i in range(8)},
            }
        ),
    ),
    "layers that name no flag": (
        "adapter files",
        Case({"adapter.json": b"{}"}, {"layers": "0000000000"}),
    ),
    "a value of a grid that names no file": (
        "sweeps",
        Case({"flags.yaml": b'{"learning_rate": false}'}),
    ),
    "a folder like what a killed run leaves": (
        "output folders",
        Case({"sweep.csv.01234567.tmp": None}, {"overwrite": False}),
    ),
    "a link in an exported model": (
        "output folders",
        Case(
            {
                "saved_model/saved_model.pb": Link("../outside/below"),
                ".lock": LOCK,
                "eval_results.txt": None,
            },
            {"overwrite": False},
        ),
    ),
    "a lock of a machine of two lines": (
        "output folders",
        Case({".lock": LOCK.replace(b'"another"', b'"\\r\\n"')}, {"overwrite": False}),
    ),
    "a file like what a killed run leaves": (
        "output folders",
        Case({"adapter.tmp-0123": b"", "saved_model.tmp-0123": b""}, {"overwrite": False}),
    ),
    "a folder in the place of the best weights": (
        "output folders",
        Case({"checkpoints/best-3.safetensors": None}, {"overwrite": True}),
    ),
    "checkpoints behind a link to nothing": (
        "output folders",
        Case({"checkpoints": Link("nowhere")}, {"overwrite": False}),
    ),
    "a method of 5,000 letters": ("adapter directories", changed(method="x" * 5000)),
    "a tuning of 5,000 letters": (
        "adapter directories",
        changed(method="x" * 5000, tuning={"method": "x" * 5000}),
    ),
    "a head of 5,000 letters": ("adapter directories", changed(head="x" * 5000)),
    "a name of many numbers": ("adapter directories", changed(name=[7] * 5000)),
    "a run of many numbers": ("adapter directories", changed(run=[7] * 5000)),
    "labels of 5,000 letters": (
        "tables",
        Case(
            {"train.tsv": b"a\tb\t" + b"x" * 5000 + b"\n", "dev.tsv": b"a\tb\t1\n"},
            TABLE | {"roles": ("train", "dev")},
        ),
    ),
    "a label of two lines": (
        "tables",
        Case(
            {"test.csv": b'"a","b","0\n0"\n'},
            TABLE | {"extension": "csv", "regression": False},
        ),
    ),
    "weights whose type is a list": ("adapter directories", with_header(dtype=[])),
    "weights whose type is a number": ("adapter directories", with_header(dtype=2**70)),
    "a checkpoint whose index leads past its end": (
        "base checkpoints",
        with_index(support.past_its_end),
    ),
    "a checkpoint with a block of 2**49 bytes": (
        "base checkpoints",
        with_index(support.too_large_for_memory),
    ),
    "windows without number": (
        "windows kept",
        Case({"fc458e6ff9a1e3f7/done.json": b'{"count": Infinity, "name": "a", "sha256": []}'}),
    ),
    "packed text without its counts": ("packed text", without_counts()),
    "windows of another number than there are": ("windows kept", counted(9)),
    "windows of a name that no file can have": (
        "windows kept",
        Case({"fc458e6ff9a1e3f7/done.json": b'{"count": 1, "name": "\\ud800", "sha256": []}'}),
    ),
    "a report that is a link to nowhere": (
        "output folders",
        Case({"report.html": Link("nowhere")}, {"overwrite": True}),
    ),
}
