"""Question answering with `run_squad.py`; the names are those of google-research/bert."""

import dataclasses
import functools

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting

_setting = functools.partial(setting, commands=(Command.SQUAD,))


@dataclasses.dataclass(frozen=True)
class QuestionsConfig:
    """Question answering with `run_squad.py`."""

    train_file: str | None = _setting(None, "SQuAD JSON to train on.", Role.TASK, path="read")
    predict_file: str | None = _setting(
        None, "SQuAD JSON to answer; scored if it has answers.", Role.ASKED, path="read"
    )
    doc_stride: int = _setting(
        128, "Word pieces between the starts of two windows.", Role.READING, lowest=1
    )
    max_query_length: int = _setting(
        64, "Longest question in word pieces; longer ones are cut.", Role.READING, lowest=1
    )
    version_2_with_negative: bool = _setting(
        False, "Some questions have no answer (SQuAD 2.0).", Role.READING
    )
    n_best_size: int = _setting(20, "Answers kept for each question.", Role.DECODING, lowest=1)
    max_answer_length: int = _setting(30, "Longest answer in word pieces.", Role.DECODING, lowest=1)
    null_score_diff_threshold: float = _setting(
        0.0,
        "Leave a question unanswered if the score for this exceeds that of the best answer by more "
        "than this threshold.",
        Role.DECODING,
        only_with=("version_2_with_negative", (True,)),
    )
    features_dir: str | None = _setting(
        None,
        "Folder that keeps windows between runs. Default: OUTPUT_DIR/features.",
        Role.CACHE,
        path="written",
    )
    question: str | None = _setting(
        None, "Answer this one question, with --context and --do_predict.", Role.ONE_QUESTION
    )
    context: str | None = _setting(
        None, "The text that holds the answer to --question.", Role.ONE_QUESTION
    )
    verbose_logging: bool = _setting(False, "Not used; kept for old command lines.", Role.UNUSED)
