"""`--config`, `--sweep` and `--task_name`: YAML of any content."""

from absl import flags
from hypothesis import strategies as st

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.cli.config_file import apply_config_file
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.run.planning import data_config
from adapter_bert_tf.runners.classification.multitask_data import read_tasks
from adapter_bert_tf.sweeps.grid import (
    MOST_RUNS,
    all_runs,
    check_sweep,
    combinations,
    read_grid,
)
from tests import support
from tests.fuzz import values
from tests.fuzz.cases import Case

NAMES = (
    *("seed", "learning_rate", "num_train_epochs", "train_batch_size", "do_train", "tuning"),
    *("adapter", "adapter_layers", "output_dir", "task_name", "config", "sweep", "flags", "grid"),
    *("keep", "delimiter", "precision", "max_seq_length", "eval_every_steps", "data_dir"),
)
PLAIN = (
    *("1", "0.5", "1e-3", "true", "no", "null", "~", "adapters", "houlsby", "best", "[1, 2]", "[]"),
    *("{}", "2026-13-45", "0x1f", "0o17", "1_000", "190:20:30", ".inf", ".nan", "!!int _", "<<"),
    *("!!binary ////", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1]", "!x y", "&a [*a]", "*b"),
    *("!!timestamp x", "'", '"\\ud800"', '"\\0"', '"\\e[2J"', "|\n  a\n  b", ">-\n  a", "? a", "%"),
    *(
        "!!float _",
        "!!float 1:x",
        "!!null x",
        "!!bool 3",
        "!!str [1]",
        "!!map 3",
        "!!seq 3",
        "=",
        "-",
    ),
    *("9" * 400, "9" * 5000, "x" * 3000, "[[1], [2]]", "[1, 1]", "2026-01-01", "1e400", "- 1"),
)


def _value():
    return st.sampled_from(PLAIN) | values.texts(8)


@st.composite
def _lines(draw):
    names = st.sampled_from(NAMES) | _value()
    lines = [f"{draw(names)}: {draw(_value())}" for _ in range(draw(st.integers(0, 5)))]
    text = "\n".join(lines)
    if draw(st.integers(0, 5)) == 0:
        text = f"{draw(st.sampled_from(('flags', 'grid', 'a: &a', '? ')))}:\n  " + "\n  ".join(
            lines
        )
    content = text.encode("utf-8", "surrogatepass")
    return draw(st.just(content) | values.edited(content)) if draw(st.booleans()) else content


@st.composite
def cases(draw):
    """Files of flags: YAML by lines, JSON, and damaged ones of both."""
    record = {"flags": dict.fromkeys(NAMES[:8], 1), "grid": {"learning_rate": [1e-3, 3e-3]}}
    anything = values.changed(record) | values.json_values()
    named = st.dictionaries(st.sampled_from(NAMES), values.json_values(), max_size=4)
    return Case({"flags.yaml": draw(_lines() | values.json_bytes(anything | named))})


TABLE = b"a\tn\tlabel\n" + b"".join(b"the cat\t%d\t%d.5\n" % (i, i % 2) for i in range(12))
COLA = b"".join(b"x\t%d\t\tthe red dog\n" % (i % 2) for i in range(12))
TASKS = {
    "data/mine/train.tsv": TABLE,
    "data/CoLA/train.tsv": COLA,
    "data/other/train.tsv": COLA,
    "vocab.txt": "\n".join(support.VOCABULARY).encode(),
}


@st.composite
def task_lists(draw):
    """Files of tasks: sound ones with changes, and anything."""
    table = {"text_a_column": "a", "label_column": 2, "regression": True}
    glue = {"task_name": "cola", "max_train_examples": 10, "split_seed": 1}
    changed = values.changed({"mine": table, "cola": None, "other": glue})
    names = ("header", "encoding", "delimiter", "quoted", "text_b_column", "data_dir")
    entries = st.dictionaries(st.sampled_from((*table, *glue, *names)), values.scalars())
    named = st.dictionaries(st.sampled_from(("cola", "mine", "../b", "")), entries, max_size=3)
    return Case(TASKS | {"tasks.yaml": draw(values.json_bytes(changed | named) | _lines())})


def tasks(folder, settings):
    """Reads the data of a file's tasks; each has examples, and outputs of its own."""
    given = (f"--task_name={folder}/tasks.yaml", f"--data_dir={folder}/data", "--do_train")
    flags = config_of(_parsed(*given, "--output_dir=x", "--max_seq_length=16"))
    found = read_tasks(data_config(flags), read_vocabulary(f"{folder}/vocab.txt"), None)
    assert found and all(task.count for task in found)
    columns = [task.position.columns for task in found]
    assert [column.start for column in columns] == [0, *(column.stop for column in columns[:-1])]


def config(folder, settings):
    """Sets the flags that the file names."""
    apply_config_file(_parsed(f"--config={folder}/flags.yaml"))


def sweep(folder, settings):
    """Makes the runs of the grid; each has its own folder."""
    out = f"--output_dir={folder}/out"
    run = config_of(_parsed("--do_train", "--do_eval", out, f"--sweep={folder}/flags.yaml"))
    grid = read_grid(run)
    runs = all_runs(run, combinations(run, grid))
    check_sweep(run, grid)
    assert 0 < len(runs) <= MOST_RUNS
    assert len({one.output.output_dir for _, one in runs}) == len(runs)
    assert all(one.output.output_dir.startswith(f"{folder}/out/") for _, one in runs)


def _parsed(*arguments):
    parsed = flags.FlagValues()
    define_flags(Command.CLASSIFIER, parsed)
    parsed(["run_classifier.py", *arguments])
    return parsed
