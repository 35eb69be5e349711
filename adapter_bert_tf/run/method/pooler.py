"""Whether the pooler is trained, where the user does not say: the base decides.

BERT's pooler was trained with the rest, to predict whether a sentence follows another, and
adapter-bert keeps it as it is. A base for sentence embeddings does not use its pooler; what is in
its checkpoint is what training began with, and is trained with the head.
"""

from adapter_bert_tf.base import Base
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.training.tuning import uses_train_pooler

FLAG = "train_pooler"


def with_pooler_default(flags: RunFlags, base: Base, is_used: bool) -> RunFlags:
    """The flags, with the base's answer if the user and an earlier run gave none.

    Args:
      flags: of a run that trains.
      base: `Base`.
      is_used: whether the run's heads read the pooler.
    """
    if flags.values[FLAG] is not None:
        return flags
    wanted = is_used and uses_train_pooler(flags.tuning) and not base.has_trained_pooler
    return flags.with_defaults(**{FLAG: wanted})
