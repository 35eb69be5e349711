"""The two small tasks whose data ships with this package: for the demo and for tests."""

import pathlib

from adapter_bert_tf.tasks.task import Columns, Task

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "shipped"

SHIPPED = (
    # Did what the sentence speaks of happen (1), or was it planned, feared, cancelled (0)?
    Task(
        "demo_factuality", "demo-factuality", labels=("0", "1"), metrics=("accuracy", "f1"),
        columns=Columns("sentence", label="label"),
        test_columns=Columns("sentence", index="index"),
        folder=str(FOLDER / "factuality"),
    ),
    # Do two messages say the same?
    Task(
        "demo_paraphrase", "demo-paraphrase", labels=("0", "1"), metrics=("accuracy", "f1"),
        columns=Columns("sentence1", "sentence2", label="label"),
        test_columns=Columns("sentence1", "sentence2", index="index"),
        folder=str(FOLDER / "paraphrase"),
    ),
)
