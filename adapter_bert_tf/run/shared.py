"""What the runs of one process share: bases and tokenized data, each read once."""

from adapter_bert_tf.base import open_base
from adapter_bert_tf.run import inputs

BASE_FLAGS = ("base_model", "bert_config_file", "vocab_file", "init_checkpoint", "do_lower_case")


class Shared:
    """Keeps bases by the flags that name them, and the latest data."""

    def __init__(self):
        self._bases = {}
        self._inputs = {}

    def base(self, flags):
        """The `Base` that the flags name."""
        key = tuple(getattr(flags, name) for name in BASE_FLAGS)
        if key not in self._bases:
            self._bases[key] = open_base(*key)
        return self._bases[key]

    def data(self, key, read):
        """What `read` returns; what it returned last if the key is the same."""
        if key not in self._inputs:
            self._inputs = {key: read()}
        return self._inputs[key]

    def inputs(self, flags, task, saved=None):
        """The `Inputs` of a run; those of the last one if nothing that matters has changed."""
        vocabulary = self.base(flags).vocabulary
        if saved:
            return inputs.read_inputs(flags, task, vocabulary, saved)
        sample = flags.seed if flags.max_train_examples else None
        key = (vocabulary.sha256, vocabulary.lower_case, sample,
               *(getattr(flags, name) for name in inputs.FLAGS))
        return self.data(key, lambda: inputs.read_inputs(flags, task, vocabulary))
