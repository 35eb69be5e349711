"""The two small tasks whose data ships with this package: for the demo and for tests."""

import pathlib

from adapter_bert_tf.tasks.glue import BINARY, glue_task
from adapter_bert_tf.tasks.task import Columns

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "shipped"

SHIPPED = (
    # Did what the sentence speaks of happen (1), or was it planned, feared, cancelled (0)?
    glue_task(
        "demo-factuality",
        BINARY,
        "accuracy f1",
        Columns("sentence", label="label"),
        name="demo_factuality",
        tfds=(),
        folder=str(FOLDER / "factuality"),
    ),
    # Do two messages say the same?
    glue_task(
        "demo-paraphrase",
        BINARY,
        "accuracy f1",
        Columns("sentence1", "sentence2", label="label"),
        name="demo_paraphrase",
        tfds=(),
        folder=str(FOLDER / "paraphrase"),
    ),
)
