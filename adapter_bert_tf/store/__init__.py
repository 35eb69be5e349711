"""Adapters as artefacts: a directory with a config, the weights and a card."""

from adapter_bert_tf.store.directory import SavedAdapter, load_adapter, save_adapter

__all__ = ["SavedAdapter", "load_adapter", "save_adapter"]
