"""What is wrong with flags alone, found before TensorFlow is loaded. All raise `InputError`."""

import math
from collections.abc import Sequence

from adapter_bert_tf.command import table
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.command.run_flags import Part, RunFlags
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import shown
from adapter_bert_tf.tasks import OWN, find_task


def check(flags: RunFlags) -> None:
    """Checks what a command is given, as far as no file is needed."""
    check_actions(flags)
    if flags.do_train:
        check_rates(flags)
    if "task_name" in flags.values:
        check_task_name(flags)
    if "train_file" in flags.values:
        check_questions(flags)


def check_words(words: Sequence[str]) -> None:
    """All of a command line must be flags: absl takes `--overwrite false` for `--overwrite`.

    And what follows the first word that is none for more such words.
    """
    if words:
        raise InputError(
            f"Not a flag: {shown(words[0])}. A value is joined to its flag by =, as in "
            "--do_eval=false."
        )


def check_actions(flags: RunFlags) -> None:
    """There must be something to do, and a place for it."""
    if not flags.output_dir:
        raise InputError("--output_dir is missing: the folder for the adapter and the results.")
    names = table.with_role(Role.TRAIN, Role.APPLY, Role.EXPORT)
    if not any(getattr(flags, name) for name in names):
        asked = ", ".join(f"--{name}" for name in names)
        raise InputError(f"Nothing to do: give at least one of {asked}.")


def check_rates(flags: RunFlags) -> None:
    """Rates and epochs are numbers that one can train with."""
    rate = flags.learning_rate
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise InputError(f"--learning_rate must be a number above 0. Received: {rate}")
    if not math.isfinite(flags.num_train_epochs):
        raise InputError(f"--num_train_epochs must be a number. Received: {flags.num_train_epochs}")


def check_task_name(flags: RunFlags | Part) -> None:
    """The task must be named, and known."""
    if not flags.task_name:
        raise InputError("--task_name is missing. For example --task_name=MRPC.")
    if flags.task_name.lower() != OWN:
        find_task(flags.task_name)


def check_questions(flags: RunFlags | Part) -> None:
    """What is to be learned and answered, and room for it."""
    if (flags.question is None) != (flags.context is None):
        raise InputError("--question and --context belong together. Received one of them.")
    if flags.question is not None and not flags.do_predict:
        raise InputError("--question needs --do_predict.")
    if not math.isfinite(flags.null_score_diff_threshold):
        raise InputError(
            "--null_score_diff_threshold must be a number. Received: "
            f"{flags.null_score_diff_threshold}"
        )
    if flags.data_source == "tsv":
        _check_question_files(flags)
    if flags.max_seq_length <= flags.max_query_length + 3:
        raise InputError(
            f"--max_seq_length={flags.max_seq_length} leaves no room for a context: "
            f"it must be above --max_query_length={flags.max_query_length} + 3."
        )


def _check_question_files(flags: RunFlags | Part) -> None:
    if flags.do_train and not flags.train_file:
        raise InputError("--do_train needs --train_file, a SQuAD JSON file.")
    if flags.do_eval and not flags.predict_file:
        raise InputError("--do_eval needs --predict_file, a SQuAD JSON file with answers.")
    if flags.do_predict and not flags.predict_file and flags.question is None:
        raise InputError(
            "--do_predict needs --predict_file, a SQuAD JSON file, or --question and --context."
        )
