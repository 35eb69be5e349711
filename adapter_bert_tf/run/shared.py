"""What the runs of one process share: bases and tokenized data, each read once."""

from adapter_bert_tf.base import open_base
from adapter_bert_tf.run.preflight import check_batches
from adapter_bert_tf.run.settings import distribution
from adapter_bert_tf.training.strategy import make_strategy

BASE_FLAGS = ("base_model", "bert_config_file", "vocab_file", "init_checkpoint", "do_lower_case")


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
        key = tuple(getattr(flags, name) for name in BASE_FLAGS)
        if key not in self._bases:
            self._bases[key] = open_base(*key)
        return self._bases[key]

    def data(self, flags, names, read):
        """What `read` returns; what it returned last if nothing that matters has changed.

        Args:
          flags: `RunFlags`.
          names: of the flags that decide what is read, apart from the base's and the seed.
          read: function of a `Vocabulary`.
        """
        vocabulary = self.base(flags).vocabulary
        sample = flags.seed if flags.max_train_examples else None
        key = (
            vocabulary.sha256,
            vocabulary.lower_case,
            sample,
            *(getattr(flags, name) for name in names),
        )
        if key not in self._data:
            self._data = {key: read(vocabulary)}
        return self._data[key]
