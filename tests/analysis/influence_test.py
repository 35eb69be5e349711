"""Relative changes of adapters, by hand and as a command."""

import csv

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.modules import AdapterModule, Sublayer
from adapter_bert_tf.analysis.layers import influence
from tests.analysis.looked import look, model_of, some_inputs
from tests.runs import train


class Scaled(AdapterModule):
    """Adds a third of the sublayer's output to it, in one place."""

    def adapt_sublayer(self, sublayer):
        if sublayer.layer == 1:
            return sublayer.changed_by(sublayer.output / 3)
        return sublayer.unchanged()


def test_a_change_by_hand():
    output = tf.constant([[[3.0, 4.0], [0.0, 0.0]]])
    sublayer = Sublayer(1, "attention", output, output, lambda x: x, output, output)
    module = influence.ObservedModule(Scaled())
    np.testing.assert_allclose(module.adapt_sublayer(sublayer), output * 4 / 3)
    np.testing.assert_allclose(module.changes[1, "attention"], [[1 / 3, 0]], rtol=1e-6)


@pytest.mark.parametrize("preset, places", [("houlsby", 6), ("pfeiffer", 3)])
def test_it_changes_nothing_and_sees_every_adapter(preset, places):
    encoder, inputs = model_of(preset).encoder, some_inputs()
    found = influence.relative_changes(encoder, inputs)
    assert sum(bool(x.numpy().any()) for x in found.values()) == places and len(found) == 6
    module = influence.ObservedModule(encoder.module())
    seen = encoder.encoder(inputs, module=module)["pooled_output"]
    np.testing.assert_array_equal(seen, encoder(inputs)["pooled_output"])


def test_the_command(looked_at, tmp_path, capsys):
    out = f"--output_dir={tmp_path}/out"
    assert look("influence", looked_at, f"--adapter_dir={looked_at.run}/adapter", out) is None
    assert "layer 2  feed_forward" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "out" / "influence.csv").open()))
    assert [(row["layer"], row["sublayer"]) for row in rows] == [
        (layer, sublayer) for layer in "12" for sublayer in ("attention", "feed_forward")
    ]
    assert all(0 < float(row["relative_change"]) < 2 for row in rows)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert look("influence", looked_at, f"--adapter_dir={looked_at.run}/adapter", out) is None
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_the_picture():
    changes = {(0, "attention"): 0.1, (0, "feed_forward"): 0.2, (2, "attention"): 0.05}
    axes = influence.draw("a $x$", changes, 1234).axes[0]
    heights = [round(bar.get_height(), 6) for bar in axes.patches]
    assert heights == [10, 5, 20, 0]
    assert "n = 1,234 word pieces" in axes.get_title() and "%" in axes.get_ylabel()


def test_a_method_that_adds_to_no_sublayer_is_refused(looked_at, tmp_path):
    """LoRA changes what is inside; ablations measure it."""
    out = train(looked_at.data, looked_at.base, tmp_path / "run", "--adapter=lora")
    adapter = f"--adapter_dir={out}/adapter"
    error = look("influence", looked_at, adapter, f"--output_dir={tmp_path}/influence")
    assert "ablation" in error
    assert look("ablation", looked_at, adapter, f"--output_dir={tmp_path}/ablation") is None
    assert (tmp_path / "ablation" / "ablation.csv").exists()
