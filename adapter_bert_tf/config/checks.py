"""What is wrong with flags alone, found before TensorFlow is loaded. All raise `InputError`."""

import math
from collections.abc import Sequence

from adapter_bert_tf.config import table
from adapter_bert_tf.config.flags_several import SEVERAL
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_flags import Part, RunFlags
from adapter_bert_tf.config.task_list import entries, is_several
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks import OWN, find_task


def check(flags: RunFlags) -> None:
    """Checks what a command is given, as far as no file is needed."""
    check_actions(flags)
    if flags.do_train:
        check_rates(flags)
        if not flags.sweep:  # Its runs may differ in this.
            check_fusion(flags)
            check_together(flags)
    if "task_name" in flags.values:
        check_task_name(flags)
    if "train_file" in flags.values:
        check_questions(flags)
        # To apply an adapter, its own settings count where none are given.
        if flags.do_train or flags.given >= {"max_seq_length", "max_query_length"}:
            check_room(flags)


def check_words(words: Sequence[str]) -> None:
    """All of a command line must be flags: absl takes `--overwrite false` for `--overwrite`.

    And what follows the first word that is none for more such words.
    """
    if words:
        raise InputError(
            f"Not a flag: {preview(words[0])}. A value is joined to its flag by =, as in "
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


def check_fusion(flags: RunFlags) -> None:
    """A fusion needs adapters to listen to; one that is trained further has its own."""
    if flags.tuning == "fusion" and not flags.fuse and not flags.init_from:
        raise InputError(
            "--tuning=fusion needs --fuse=DIR1,DIR2,...: the adapters that it listens to."
        )
    parts = [part.strip() for part in (flags.fuse or "").split(",") if part.strip()]
    if flags.fuse and (not parts or any(part.endswith("=") for part in parts)):
        raise InputError(
            "--fuse names adapter directories, with commas between: DIR1,DIR2 or NAME=DIR. "
            f"Received: {preview(flags.fuse)}"
        )
    if flags.fuse and flags.init_from:
        raise InputError(
            "--fuse begins a fusion, and --init_from goes on with one, which has its members. "
            "Received: both. Leave one out."
        )


def check_together(flags: RunFlags) -> None:
    """Several tasks are trained by methods for several, and by no others."""
    for_several = flags.tuning in SEVERAL
    if for_several and "task_name" not in flags.values:
        raise InputError(
            f"--tuning={flags.tuning} trains several tasks of run_classifier.py together. "
            f"Received: run_squad.py, which has one. Leave it out."
        )
    decides = flags.init_from and "tuning" not in flags.given  # The adapter to begin from.
    several = is_several(getattr(flags, "task_name", None))
    if several and flags.adapter_name:
        raise InputError(
            "--adapter_name is of one task. Several have their names from --task_name. Received: "
            f"{preview(flags.adapter_name)}"
        )
    if several and flags.folds:
        raise InputError("--folds is of one task. Received: several.")
    if several and not for_several and not decides:
        raise InputError(
            f"--task_name={preview(flags.task_name)} lists several tasks, and --tuning="
            f"{flags.tuning}{'' if 'tuning' in flags.given else ', the default,'} trains one. "
            f"Choose one of {', '.join(SEVERAL)}, or give each task a run of its own."
        )


def check_task_name(flags: RunFlags | Part) -> None:
    """The task must be named, and known."""
    if not flags.task_name:
        raise InputError("--task_name is missing. For example --task_name=MRPC.")
    if is_several(flags.task_name):
        entries(flags.task_name)
    elif flags.task_name.lower() != OWN:
        find_task(flags.task_name)


def check_questions(flags: RunFlags | Part) -> None:
    """What is to be learned and answered."""
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


def check_room(flags: RunFlags | Part) -> None:
    """Room for contexts beside questions; to apply an adapter, by its own settings."""
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
