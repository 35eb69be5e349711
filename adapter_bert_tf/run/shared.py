"""What the runs of one process share: bases and tokenized data, each read once."""

from adapter_bert_tf.base import open_base
from adapter_bert_tf.command import table
from adapter_bert_tf.command.roles import Role
from adapter_bert_tf.run.preflight import check_batches
from adapter_bert_tf.run.settings import distribution
from adapter_bert_tf.training.strategy import make_strategy


class Shared:
    """Keeps bases by the flags that name them, and the latest data."""

    def __init__(self):
        self._bases = {}
        self._data = {}
        self._strategy = None

    def strategy(self, flags):
        """The `tf.distribute` strategy of the process, made by the first who asks."""
        if self._strategy is None:
            self._strategy = make_strategy(
                distribution(flags), flags.tpu_name, flags.tpu_zone, flags.gcp_project
            )
            check_batches(flags, self._strategy)
        return self._strategy

    def base(self, flags):
        """The `Base` that the flags name."""
        key = tuple(getattr(flags, name) for name in table.with_role(Role.BASE))
        if key not in self._bases:
            self._bases[key] = open_base(
                flags.base_model,
                flags.bert_config_file,
                flags.vocab_file,
                flags.init_checkpoint,
                flags.do_lower_case,
            )
        return self._bases[key]

    def data(self, flags, read):
        """What `read` returns; what it returned last if nothing that matters has changed.

        Args:
          flags: `RunFlags`.
          read: function of a `Vocabulary`.
        """
        vocabulary = self.base(flags).vocabulary
        sample = flags.seed if flags.max_train_examples else None
        key = (
            vocabulary.sha256,
            vocabulary.lower_case,
            sample,
            *(flags.values[name] for name in table.DATA if name in flags.values),
        )
        if key not in self._data:
            self._data = {key: read(vocabulary)}
        return self._data[key]
