"""Checks of a configuration that need no file and no TensorFlow; all raise `InputError`."""

import math

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.model import MULTITASK_TUNINGS
from adapter_bert_tf.config.settings import with_role
from adapter_bert_tf.config.task_list import entries, is_several
from adapter_bert_tf.errors import Conflict, InputError, Missing
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks import OWN, find_task


def check(config: RunConfig) -> None:
    """Runs all checks of a command's configuration."""
    _check_actions(config)
    _check_precision(config)
    if config.actions.do_train:
        _check_rates(config)
        if not config.sweeps.sweep:  # Its runs may differ in this.
            _check_fusion(config)
            _check_stack(config)
            _check_together(config)
    if config.names_task or config.data.task_name:
        _check_task_name(config)
    if config.answers_questions:
        check_questions(config)
        # A saved adapter provides its own lengths if none are given.
        if config.actions.do_train or config.given >= {"max_seq_length", "max_query_length"}:
            check_room(config)


def _check_actions(config: RunConfig) -> None:
    if not config.output.output_dir:
        raise Missing("--output_dir is missing: the folder for the adapter and the results.")
    names = with_role(Role.TRAIN, Role.APPLY, Role.EXPORT)
    if not any(config.value(name) for name in names):
        flags = ", ".join(f"--{name}" for name in names)
        raise Missing(f"Nothing to do: give at least one of {flags}.")


def _check_precision(config: RunConfig) -> None:
    if config.device.precision == "float16" and config.device.strategy == "tpu":
        raise Conflict(
            "--precision=float16 needs loss scaling, which TensorFlow does not have on TPUs. Use "
            "--precision=bfloat16."
        )


def _check_rates(config: RunConfig) -> None:
    rate, epochs = config.training.learning_rate, config.training.num_train_epochs
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise InputError(f"--learning_rate must be a number above 0. Received: {rate}")
    if not math.isfinite(epochs):
        raise InputError(f"--num_train_epochs must be a number. Received: {epochs}")


def _check_fusion(config: RunConfig) -> None:
    fuse, init_from = config.training.fuse, config.training.init_from
    if config.method.tuning == "fusion" and not fuse and not init_from:
        raise Missing("--tuning=fusion needs --fuse=DIR1,DIR2,...: the adapters to attend to.")
    if not fuse:
        return
    folders = [folder.strip() for folder in fuse.split(",") if folder.strip()]
    if not folders or any(folder.endswith("=") for folder in folders):
        raise InputError(
            "--fuse names adapter directories, separated by commas: DIR1,DIR2 or NAME=DIR. "
            f"Received: {preview(fuse)}"
        )
    if init_from:
        raise Conflict(
            "--fuse starts a new fusion, and --init_from continues one. Leave one of them out."
        )


def _check_stack(config: RunConfig) -> None:
    tuning, stack = config.method.tuning, config.training.stack
    if stack and config.actions.do_train and tuning != "adapters":
        raise Conflict(
            f"--stack works with --tuning=adapters. Received: --tuning={tuning}. Leave out --stack."
        )


def _check_together(config: RunConfig) -> None:
    tuning, task_name = config.method.tuning, config.data.task_name
    multitask, several = tuning in MULTITASK_TUNINGS, is_several(task_name)
    if multitask and "task_name" not in config.values:
        raise Conflict(
            f"--tuning={tuning} trains several tasks together, and {config.command.value}.py has "
            "one. Leave it out."
        )
    if multitask and not task_name:
        raise Missing(
            f"--tuning={tuning} trains several tasks together. List them in --task_name: "
            "NAME=FOLDER,NAME=FOLDER, or a YAML file of tasks."
        )
    if not several:
        return
    if config.data.adapter_name:
        raise Conflict(
            "--adapter_name works with one task; several have the names in --task_name. Leave it "
            "out."
        )
    if config.data.folds:
        raise Conflict("--folds works with one task. Received: several.")
    initial_adapter_decides = config.training.init_from and "tuning" not in config.given
    if not multitask and not initial_adapter_decides:
        raise Conflict(
            f"--task_name={preview(task_name)} lists several tasks, and --tuning={tuning} trains "
            f"one. Choose one of {', '.join(MULTITASK_TUNINGS)}, or start a run for each task."
        )


def _check_task_name(config: RunConfig) -> None:
    name = config.data.task_name
    if not name:
        raise Missing(
            "--task_name is missing. For example --task_name=MRPC. Files of tagged words are for "
            "adapter-bert tag."
        )
    if is_several(name):
        entries(name, config.command)
    elif config.names_task and name.lower() != OWN:
        find_task(name)


def check_questions(config: RunConfig) -> None:
    """Requires the files and the question that the actions of `run_squad.py` need."""
    questions = config.questions
    if (questions.question is None) != (questions.context is None):
        raise Missing("--question and --context belong together. Received: one of them.")
    if questions.question is not None and not config.actions.do_predict:
        raise Missing("--question needs --do_predict.")
    threshold = questions.null_score_diff_threshold
    if not math.isfinite(threshold):
        raise InputError(f"--null_score_diff_threshold must be a number. Received: {threshold}")
    if config.data.data_source == "tsv":
        _check_question_files(config)


def _check_question_files(config: RunConfig) -> None:
    actions, questions = config.actions, config.questions
    if actions.do_train and not questions.train_file:
        raise Missing("--do_train needs --train_file, a SQuAD JSON file.")
    if actions.do_eval and not questions.predict_file:
        raise Missing("--do_eval needs --predict_file, a SQuAD JSON file with answers.")
    if actions.do_predict and not questions.predict_file and questions.question is None:
        raise Missing(
            "--do_predict needs --predict_file, a SQuAD JSON file, or --question and --context."
        )


def check_room(config: RunConfig) -> None:
    """Requires room for a context in an input in addition to the question."""
    length, query = config.data.max_seq_length, config.questions.max_query_length
    if length <= query + 3:
        raise Conflict(
            f"--max_seq_length={length} must be above --max_query_length={query} + 3, to leave "
            "room for a context."
        )
