"""GLUE (Wang et al. 2019) as its download script lays the files out, and the shipped tasks."""

import dataclasses
import pathlib

from adapter_bert_tf.tasks.task import Columns, Source, Task

BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
# In adapter-bert's order, so that its checkpoints keep their meaning.
NLI = ("contradiction", "entailment", "neutral")


def glue_task(title, labels, metrics, columns, rows=None, tfds=None, train=None, test=None, **more):
    """A task in GLUE's layout: `train.tsv`, `dev.tsv` and an unlabelled `test.tsv`.

    Args:
      title: as GLUE writes it.
      labels: tuple of label strings; None where the type has none.
      metrics: names, separated by spaces.
      columns: `Columns` of the labelled files.
      rows: number of rows of the test file that the GLUE server expects, if it takes the task.
      tfds: the texts' features in TensorFlow Datasets; None: called as the columns, (): no such
        data.
      train: `Source` arguments of the labelled files.
      test: `Columns` of the test file; None: the same, with an `index` and no label.
      **more: other arguments of `Task`.
    """
    name = title.lower()
    test = test or dataclasses.replace(columns, label=None, index="index")
    if tfds is None:
        tfds = tuple(column for column in (test.text_a, test.text_b) if column is not None)
    layout = {split: Source(f"{split}.tsv", columns, **(train or {})) for split in ("train", "dev")}
    layout["test"] = Source("test.tsv", test)
    test_rows = {"test": rows} if rows else {}
    values = {"name": name, "layouts": (layout,), "test_rows": test_rows} | more
    return Task(
        title=title,
        metrics=tuple(metrics.split()),
        labels=labels,
        tfds=(name.replace("-", ""), *tfds) if tfds else None,
        **values,
    )


SENTENCE = Columns("sentence", label="label")
PAIR = Columns("sentence1", "sentence2", label="label")
COLA, COLA_TEST = Columns(3, label=1), Columns("sentence", index="index")
MRPC = Columns("#1 String", "#2 String", label="Quality")
STS_B = Columns("sentence1", "sentence2", label="score")
QQP = Columns("question1", "question2", label="is_duplicate")
QQP_TEST = Columns("question1", "question2", index="id")
MNLI = Columns("sentence1", "sentence2", label="gold_label")
MNLI_TEST = Columns("sentence1", "sentence2", index="index")
MNLI_LAYOUT = {
    "train": Source("train.tsv", MNLI),
    "dev": Source("dev_matched.tsv", MNLI),
    "dev_mismatched": Source("dev_mismatched.tsv", MNLI),
    "test": Source("test_matched.tsv", MNLI_TEST, submission="MNLI-m"),
    "test_mismatched": Source("test_mismatched.tsv", MNLI_TEST, submission="MNLI-mm"),
}
MNLI_TEST_ROWS = {"test": 9796, "test_mismatched": 9847}
MNLI_FILES = {"layouts": (MNLI_LAYOUT,), "tfds": ("premise", "hypothesis")}
AX_LAYOUT = {"test": Source("diagnostic.tsv", MNLI_TEST)}
AX_FILES = MNLI_FILES | {"layouts": (AX_LAYOUT,)}
QNLI = Columns("question", "sentence", label="label")
SCORES = {"task_type": "regression", "score_range": (0.0, 5.0)}
CUT_ROWS = {"skip_bad_rows": True}  # A few rows of the published QQP are cut short.

GLUE = (
    glue_task("CoLA", BINARY, "mcc accuracy", COLA, 1063, test=COLA_TEST),
    glue_task("SST-2", BINARY, "accuracy", SENTENCE, 1821),
    glue_task("MRPC", BINARY, "accuracy f1", MRPC, 1725, tfds=("sentence1", "sentence2")),
    glue_task("STS-B", None, "spearman pearson", STS_B, 1379, **SCORES),
    glue_task("QQP", BINARY, "f1 accuracy", QQP, 390965, train=CUT_ROWS, test=QQP_TEST),
    glue_task("MNLI", NLI, "accuracy", MNLI, test_rows=MNLI_TEST_ROWS, **MNLI_FILES),
    glue_task("QNLI", ENTAILMENT, "accuracy", QNLI, 5463),
    glue_task("RTE", ENTAILMENT, "accuracy", PAIR, 3000),
    glue_task("WNLI", BINARY, "accuracy", PAIR, 146),
    # The diagnostic set: no training data, predicted with an adapter of MNLI.
    glue_task("AX", NLI, "accuracy", MNLI, 1104, adapter_of="mnli", **AX_FILES),
)

# The two small tasks whose data ships with this package: for the demo and for tests.
SHIPPED_FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "shipped"


def _shipped_task(name, columns):
    folder = str(SHIPPED_FOLDER / name)
    task = glue_task(f"demo-{name}", BINARY, "accuracy f1", columns, tfds=(), folder=folder)
    return dataclasses.replace(task, name=f"demo_{name}")


SHIPPED = (
    # Did the event of the sentence happen (1), or was it planned, feared, cancelled (0)?
    _shipped_task("factuality", SENTENCE),
    # Do two messages mean the same?
    _shipped_task("paraphrase", PAIR),
)
