"""GLUE (Wang et al. 2019), as its download script lays the files out."""

from adapter_bert_tf.tasks.task import Columns, Task

GLUE = (
    Task(
        "cola", "CoLA", labels=("0", "1"), metrics=("mcc", "accuracy"),
        columns=Columns(text_a=3, label=1),
        test_columns=Columns("sentence", index="index"),
    ),
    Task(
        "mrpc", "MRPC", labels=("0", "1"), metrics=("accuracy", "f1"),
        columns=Columns("#1 String", "#2 String", label="Quality"),
        test_columns=Columns("#1 String", "#2 String", index="index"),
    ),
)
