"""Pipelines of one test process share loaded adapters: what they compute is the same."""

import pytest

from adapter_bert_tf.beam.transform import AdapterHandler

LOADED = {}


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch):
    """Loading and tracing takes a second; Beam does it anew in each pipeline."""
    load = AdapterHandler.load_model

    def cached(self):
        key = repr((self._adapters.folders, self._adapters.stack, self._batch_size))
        if key not in LOADED:
            LOADED[key] = load(self)
        return LOADED[key]

    monkeypatch.setattr(AdapterHandler, "load_model", cached)
