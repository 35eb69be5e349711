"""Adapters from checkpoints of adapter-bert."""

import numpy as np

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.interop.adapter_bert import import_checkpoint
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import save_adapter
from tests.refusals import raises_code
from tests.support import GOLDEN

HUB_BASE = GOLDEN.parent / "adapterhub" / "base"


def test_a_checkpoint_of_adapter_bert_becomes_an_adapter(tmp_path):
    base = load_base(str(GOLDEN / "bert_model.ckpt"))
    expected = np.load(GOLDEN / "expected.npz")
    saved = import_checkpoint(str(GOLDEN / "adapter_model.ckpt"), base, "mnli", list("abc"))
    assert saved.config["adapter"] == PRESETS["adapter_bert"].to_dict()
    save_adapter(str(tmp_path / "a"), saved.config, saved.weights)
    model = AdapterModel(base)
    model.load_adapter(str(tmp_path / "a"))
    inputs = {
        "input_word_ids": expected["input_ids"],
        "input_mask": expected["input_mask"],
        "input_type_ids": expected["segment_ids"],
    }
    np.testing.assert_allclose(model(inputs, adapter="mnli"), expected["logits"], atol=1e-5)


def test_a_checkpoint_must_fit():
    base = load_base(str(HUB_BASE))
    own = load_base(str(GOLDEN / "bert_model.ckpt"))
    path = str(GOLDEN / "adapter_model.ckpt")
    for arguments, message in (
        ((path, base, "mnli", list("abc")), "mismatch: base_model"),
        ((path, own, "mnli", list("ab")), "mismatch: 2 labels"),
        (
            (str(GOLDEN / "bert_model.ckpt"), own, "mnli", list("abc")),
            "unsupported: bert_model",
        ),
    ):
        with raises_code(message):
            import_checkpoint(*arguments)
