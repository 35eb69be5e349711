"""Output folders as runs leave them, written by hand: a few kilobytes, and no model."""

import csv
import json

import numpy as np

from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.report import sweeps
from adapter_bert_tf.run.result_files import write_details_file
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.task_types.metrics import class_table, label_table
from adapter_bert_tf.task_types.spans import answer_details
from adapter_bert_tf.task_types.tag_details import seen_texts, tag_details

CLASSES, SCORES, SETS = map(TASK_TYPES.get, ("classification", "regression", "multi_label"))

HOSTILE = (
    "<script>document.title = 'taken'</script>",
    "\"quoted\" & 'single' </style></svg><img src=x onerror=alert(1)>",
    "bell \x07, half a pair \ud800, turned \u202egnirts\u202c, mark \u200f \u05e9\u05dc\u05d5",
    "{{ 7 * 7 }} {% raw %} $\\frac{x$ ]]> <!-- --",
)
LABELS = ("<b>no</b>", "$y$_es")
VERSIONS = {"python": "3.11.7", "tensorflow": "2.20.0"}


def record(task="demo", **more):
    """The content of a `run.json`."""
    return {
        "command": f"python run_classifier.py --task_name={task} --output_dir='out <1>'",
        "flags": {"task_name": task, "tuning": "adapters", "seed": 3, "output_dir": "out <1>",
                  "num_train_epochs": 2.0, "adapter": "houlsby", "regression": False},
        "learning_rate": 1e-3,
        "versions": VERSIONS,
        "labels": list(LABELS),
        "data_sha256": {"train": "ab" * 32, "dev": "cd" * 32},
        "examples": {"train": 64, "dev": 16},
        "share_cut": {"train": 0.25, "dev": 0.0},
        "base": {"hidden_size": 16, "lower_case": True},
        "adapter": {"bottleneck_size": 8},
        "parameters": {"total": 1000, "trained": 36, "groups": {
            "adapters": [30, 30], "head": [6, 6], "layers": [0, 964]}},
        "chosen_by": ["eval_accuracy"],
        "replicas": 1,
        "train_seconds": 12.25,
        "examples_per_second": 120.5,
        "global_step": 40,
        "eval": {"eval_accuracy": 0.75, "eval_loss": 0.5},
    } | more  # fmt: skip


def write(folder, values=None, steps=None, results=None):
    """Writes what every run leaves; returns the folder."""
    values = record() if values is None else values
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(values))
    steps = curves("eval_accuracy") if steps is None else steps
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
    results = values.get("eval", {}) if results is None else results
    lines = [f"{name} = {value}" for name, value in results.items()]
    (folder / "eval_results.txt").write_text("\n".join(lines) + "\n")
    return folder


def curves(*metrics):
    """Rows of `metrics.jsonl`: forty steps, evaluated at each tenth."""
    rows = [{"step": i, "loss": 0.7 - i / 100, "learning_rate": 1e-3 * (1 - i / 40)}
            for i in range(1, 41)]  # fmt: skip
    rows += [
        {"step": i, "dev/eval_loss": 0.8 - i / 200} | {f"dev/{m}": 0.4 + i / 100 for m in metrics}
        for i in (10, 20, 30, 40)
    ]
    return rows


def write_table(path, rows, delimiter="\t"):
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)


def with_texts(found, texts):
    """Details as a run writes them, with texts instead of numbers of rows."""
    shown = [
        {"line": row + 2, "texts": list(texts[row % len(texts)])} | error
        for error in found.pop("shown")
        for row in [error.pop("row")]
    ]
    return found | {"shown": shown}


def classes(folder, ids=(0, 0, 1, 1, 1, 0, 1, 0), before="", labels=LABELS, texts=None):
    """Evaluates classes: the last three examples are wrong, the first of these most surely."""
    ids = np.array(ids)
    sure = np.linspace(0.6, 0.9, len(ids))
    sure[-3:] = 0.99, 0.8, 0.7
    said = ids.copy()
    said[-3:] = (said[-3:] + 1) % len(labels)
    predicted = np.tile(((1 - sure) / (len(labels) - 1))[:, None], len(labels))
    predicted[np.arange(len(ids)), said] = sure
    write_table(folder / f"{before}eval_classes.tsv", class_table(labels, ids, said))
    found = with_texts(
        CLASSES.details(labels, ids, predicted),
        texts or [(text,) for text in HOSTILE],
    )
    write_details_file(
        str(folder), f"{before}eval_details", "demo", "dev", {"examples": len(ids), **found}
    )


def scores(folder, before=""):
    """Evaluates scores from 0 to 5; the third is furthest off."""
    truth = np.linspace(0, 5, 60)
    predicted = truth + np.sin(np.arange(60)) / 2
    predicted[2] = 5.0
    found = with_texts(SCORES.details([], truth, predicted), [("one text", "another text")])
    write_details_file(
        str(folder), f"{before}eval_details", "demo", "dev", {"examples": 60, **found}
    )


def sets(folder):
    """Evaluates any number of labels."""
    truth = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1]], np.float32)
    predicted = np.array([[0.9, 0.2, 0.4], [0.1, 0.95, 0.3], [0.8, 0.7, 0.1], [0.2, 0.3, 0.9]])
    labels = ["red", "<i>blue</i>", "green"]
    write_table(folder / "eval_classes.tsv", label_table(labels, truth, SETS.decide(predicted)))
    found = with_texts(SETS.details(labels, truth, predicted), [(t,) for t in HOSTILE])
    write_details_file(str(folder), "eval_details", "demo", "dev", {"examples": 4, **found})


CONTEXT = "The first bridge of iron was built in 1779, and it stands to this day. " * 8


def spans(folder):
    """Evaluates three answers: right, half right, wrong."""
    start = CONTEXT.index("1779", 150)
    questions = [Question(i, f"When {HOSTILE[0]}?", CONTEXT, (("1779", start),)) for i in "abc"]
    texts = {"a": "1779", "b": "in 1779", "c": ""}
    n_best = {i: [{"text": text, "probability": p}] for (i, text), p in
              zip(texts.items(), (0.9, 0.6, 0.8), strict=True)}  # fmt: skip
    scored = {"a": (1, 1.0), "b": (0, 2 / 3), "c": (0, 0.0)}
    found = answer_details(questions, scored, texts, n_best, {name: ["1779"] for name in "abc"})
    write_details_file(str(folder), "eval_details", "squad", "dev", found)


def squad_run(folder):
    """A run of `run_squad.py`."""
    flags = {"predict_file": "dev.json", "tuning": "adapters", "seed": 0}
    results = {"exact_match": 33.3, "f1": 55.6}
    values = record(flags=flags, eval=results, chosen_by=["f1"], labels=["start", "end"])
    write(folder, values, curves("f1", "exact_match"))
    spans(folder)
    return folder


def classes_run(folder):
    """A run of `run_classifier.py` on hostile texts."""
    classes(write(folder))
    return folder


def several_run(folder):
    """A run of three tasks: classes, many classes, scores."""
    tasks = ("mrpc", "news", "sts-b")
    first = [f"eval_{task}_{m}" for task, m in zip(tasks, ("f1", "accuracy", "spearman"))]  # noqa: B905
    data = {task: {"examples": {"train": 64, "dev": 16}} for task in tasks}
    results = dict.fromkeys(first, 0.7) | {"eval_average": 0.7}
    values = record(",".join(tasks), tasks=data, eval=results, chosen_by=first)
    del values["examples"]
    write(folder, values, curves(*first, "eval_average"))
    classes(folder, before="mrpc_")
    news = [f"class {i}" for i in range(12)]
    classes(folder, np.arange(120) % 12, "news_", news, [("A plain text.", "And another.")])
    scores(folder, "sts-b_")
    return folder


def sweep(folder, rates=("0.0003", "0.001", "0.003"), sizes=("8", "64"), seeds=(0, 1, 2)):
    """A sweep of learning rate and size; one run diverged, and each has a page."""
    rows, runs = [], []
    for i, rate in enumerate(rates):
        for j, size in enumerate(sizes):
            for seed in seeds:
                gone = (i, j, seed) == (2, 1, 2)
                score = 0.6 + 0.1 * i * (2 - i) + 0.02 * j + 0.01 * seed
                result = [] if gone else [str(round(score, 4)), "0.5"]
                status = "diverged" if gone else "finished"
                cost = [""] * 4 if gone else ["36", "1000", "12.5", "120.0"]
                rows.append([rate, size, str(seed), status, *cost, *result, *[""] * (2 * gone)])
                runs.append({"status": status})
                page = folder / f"learning_rate={rate},adapter_size={size},seed={seed}"
                page.mkdir(parents=True)
                (page / "report.html").write_text("<!DOCTYPE html><title>run</title>")
    header = ["learning_rate", "adapter_size", "seed", "status", *sweeps.COST]
    header += ["eval_accuracy", "eval_loss"]
    write_table(folder / "sweep.csv", [header, *rows], ",")
    values = record(best="learning_rate=0.001,adapter_size=64,seed=2", runs=runs)
    for name in ("parameters", "examples", "eval", "train_seconds", "labels"):
        del values[name]
    (folder / "run.json").write_text(json.dumps(values))
    (folder / "eval_results.txt").write_text(
        "eval_accuracy = 0.73\neval_accuracy_min = 0.72\neval_accuracy_max = 0.74\n"
    )
    return folder


TAGGED = (  # Words with IOB2 tags, expected and predicted.
    ("Anna B-person B-person|Lee I-person I-person|met O O|the O O|Acme B-group B-product|"
     "Corp I-group I-product|in O O|New B-place B-place|York I-place O|. O O"),
    "We O O|saw O O|Bern B-place B-place|, O O|not O O|Ulm B-place O|. O O",
    f"{HOSTILE[0].replace(' ', '_')} B-<b>x</b> B-<b>x</b>|says O B-person|hi O O",
    "nothing O O|here O O",
)  # fmt: skip


def tags(folder, scheme="IOB2"):
    """Evaluates tagged sentences, with one of each outcome."""
    rows = [[cell.split(" ") for cell in line.split("|")] for line in TAGGED]
    words, gold, predicted = ([[cell[i] for cell in row] for row in rows] for i in range(3))
    sure = [list(np.linspace(0.99, 0.6, len(row))) for row in rows]
    argmax = [[tag.replace("B-place", "I-place") for tag in row] for row in predicted]
    seen = seen_texts([["Anna", "Lee", "in", "Bern"]], [["B-p", "I-p", "O", "B-p"]], scheme)
    found = tag_details(words, gold, predicted, sure, argmax, seen, scheme, [1, 12, 20, 24])
    write_details_file(str(folder), "eval_details", "names", "dev", found)


def tags_run(folder):
    """A run of `run_tagger.py`."""
    flags = {"data_dir": "names", "tuning": "adapters", "seed": 0}
    results = {"eval_f1": 0.5, "eval_precision": 0.5, "eval_recall": 0.5}
    values = record(flags=flags, eval=results, chosen_by=["eval_f1"], labels=["O"])
    write(folder, values, curves("eval_f1", "eval_precision"))
    tags(folder)
    return folder
