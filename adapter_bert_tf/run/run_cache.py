"""Cache of bases, devices and tokenized data for the runs of one process."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
from absl import logging

from adapter_bert_tf.base import Base, open_base
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import DeviceConfig
from adapter_bert_tf.config.sections.model import BaseConfig
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.training.device.devices import configure_devices
from adapter_bert_tf.training.device.kernels import kernels_line
from adapter_bert_tf.training.device.precision import configure_numerics
from adapter_bert_tf.training.device.strategy import make_strategy


class RunCache:
    """Caches bases and strategies by the settings that name them, and the latest data."""

    def __init__(self) -> None:
        self._bases: dict[BaseConfig, Base] = {}
        self._data: dict[Any, Any] = {}
        self._strategies: dict[tuple[Any, ...], tf.distribute.Strategy] = {}
        self._warned: set[str] = set()
        self._printed: set[str] = set()

    def strategy(self, device: DeviceConfig) -> tf.distribute.Strategy:
        """Sets how this process computes, and returns the strategy that the settings name.

        Prints a strategy with several replicas once.
        """
        configure_numerics(device.tf32, device.deterministic)
        if line := kernels_line():
            self.print_once(line)
        key = (device.strategy, device.tpu_name, device.tpu_zone, device.gcp_project)
        if not self._strategies:
            configure_devices(device)
        if key not in self._strategies:
            strategy = make_strategy(*key)
            replicas = strategy.num_replicas_in_sync
            if replicas > 1:
                versions = installed_versions().items()
                packages = ", ".join(f"{name} {version}" for name, version in versions)
                print(f"{type(strategy).__name__}, {replicas} replicas; {packages}", flush=True)
            self._strategies[key] = strategy
        return self._strategies[key]

    def warn(self, sentences: Iterable[str]) -> None:
        """Logs each warning once, for any number of runs and sweeps."""
        for sentence in dict.fromkeys(sentences):
            if sentence not in self._warned:
                self._warned.add(sentence)
                logging.warning("%s", sentence)

    def print_once(self, line: str) -> None:
        """Prints a line once, for any number of runs and sweeps."""
        if line not in self._printed:
            self._printed.add(line)
            print(line, flush=True)

    def base(self, config: BaseConfig) -> Base:
        """Returns the base that the settings name."""
        if config not in self._bases:
            self._bases[config] = open_base(
                config.base_model,
                config.bert_config_file,
                config.vocab_file,
                config.init_checkpoint,
                config.do_lower_case,
            )
        return self._bases[config]

    def data(
        self,
        config: RunConfig,
        vocabulary: Vocabulary,
        saved: SavedAdapter | None,
        read: Callable[[RunConfig, Vocabulary, SavedAdapter | None], Any],
    ) -> Any:
        """Returns the data of `TaskRunner.read`, cached while its arguments are the same.

        `config` has only settings that decide what is read; the others have their defaults.
        """
        labels = saved and json.dumps([saved.config["labels"], saved.config.get("tasks")])
        key = (config, vocabulary.sha256, vocabulary.tokenizer, labels)
        if key not in self._data:
            self._data = {key: read(config, vocabulary, saved)}
        return self._data[key]
