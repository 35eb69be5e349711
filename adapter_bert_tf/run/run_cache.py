"""What the runs of one process share: bases, devices and tokenized data, each made once."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
from absl import logging

from adapter_bert_tf.base import Base, open_base
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_flags import Part
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.versions import installed_versions
from adapter_bert_tf.training.strategy import make_strategy


class RunCache:
    """Keeps bases and strategies by the flags that name them, and the latest data."""

    def __init__(self) -> None:
        self._bases: dict[Part, Base] = {}
        self._data: dict[Any, Any] = {}
        self._strategies: dict[tuple[Any, ...], tf.distribute.Strategy] = {}
        self._warned: set[str] = set()

    def strategy(self, distribution: str, *address: str | None) -> tf.distribute.Strategy:
        """The strategy of `--distribution`, see `make_strategy`; says what several devices are."""
        key = (distribution, *address)
        if key not in self._strategies:
            strategy = make_strategy(distribution, *address)
            replicas = strategy.num_replicas_in_sync
            if replicas > 1:
                found = ", ".join(
                    f"{name} {version}" for name, version in installed_versions().items()
                )
                print(f"{type(strategy).__name__}, {replicas} replicas; {found}", flush=True)
            self._strategies[key] = strategy
        return self._strategies[key]

    def warn(self, sentences: Iterable[str]) -> None:
        """Warns of each once, for whatever number of runs or sweeps it is true."""
        for sentence in dict.fromkeys(sentences):
            if sentence not in self._warned:
                self._warned.add(sentence)
                logging.warning("%s", sentence)

    def base(self, flags: Part) -> Base:
        """The `Base` that the flags of that role name."""
        if flags not in self._bases:
            self._bases[flags] = open_base(
                flags.base_model,
                flags.bert_config_file,
                flags.vocab_file,
                flags.init_checkpoint,
                flags.do_lower_case,
            )
        return self._bases[flags]

    def data(
        self,
        flags: Part,
        vocabulary: Vocabulary,
        saved: SavedAdapter | None,
        read: Callable[[Part, Vocabulary, SavedAdapter | None], Any],
    ) -> Any:
        """What `read` returns; what it returned last if nothing that matters has changed.

        Args:
          flags: all that decide what is read.
          vocabulary: of the base.
          saved: the adapter that is applied, whose labels count, or None.
          read: `Kind.read`.
        """
        key = (flags, vocabulary.sha256, vocabulary.lower_case, saved and _tasks_of(saved))
        if key not in self._data:
            self._data = {key: read(flags, vocabulary, saved)}
        return self._data[key]


def _tasks_of(saved: SavedAdapter) -> str:
    """What of a saved adapter decides what is read: its tasks and their labels."""
    return json.dumps([saved.config["labels"], saved.config.get("tasks")])
