"""Every preset, every way of tuning and both heads: saved here, loaded by another process.

The other process loads them in another order, beside adapters with other heads.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.training.tuning import METHODS, Tuning
from tests import support

OF_ADAPTERS = {"adapters", "fusion"}  # A fusion has its own test: `fusion_test.py`.
# Several tasks have theirs: `tests/run/several_tasks_test.py`.
ALONE = sorted(
    method
    for method in METHODS.keys() - OF_ADAPTERS
    if not Tuning(method, top_k=1).of_several_tasks
)
HEADS = ("classification", "regression", "span")
CASES = [(head, "adapters", preset) for head in HEADS for preset in PRESETS]
CASES += [(head, method, None) for head in HEADS for method in ALONE]

OTHER_PROCESS = """
import sys
import numpy as np
import adapter_bert_tf as abt

base, folder, *names = sys.argv[1:]
model = abt.AdapterModel(abt.load_base(base))
model.add_adapter("beside", list("abcde"), "pfeiffer")
for name in reversed(names):
    model.load_adapter(f"{folder}/{name}", name)
    model.add_adapter(f"after {name}", list("abc"))
inputs = dict(np.load(f"{folder}/inputs.npz"))
np.savez(f"{folder}/loaded.npz", **{name: model(inputs, adapter=name) for name in names})
"""


@pytest.mark.long
def test_another_process_computes_the_same(tiny_base_folder, tmp_path):
    model, inputs, expected = AdapterModel(load_base(tiny_base_folder)), support.batch(), {}
    for number, (head, method, preset) in enumerate(CASES):
        name = f"{head}-{method}-{preset}"
        labels = [] if head == "regression" else ["no", "yes"]
        file_name = "span" if head == "span" else "classification"
        trained = model.add_adapter(name, labels, preset, file_name, Tuning(method, top_k=1))
        rng = np.random.default_rng(number)
        for variable in trained.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.2)
        model.save_adapter(name, str(tmp_path / name))
        expected[name] = model(inputs, adapter=name).numpy()
    np.savez(tmp_path / "inputs.npz", **inputs)
    subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, tiny_base_folder, tmp_path, *expected],
        check=True,
        capture_output=True,
    )
    loaded = np.load(tmp_path / "loaded.npz")
    for name, logits in expected.items():
        np.testing.assert_allclose(loaded[name], logits, atol=1e-6, err_msg=name)
    assert len({json.dumps(logits.tolist()) for logits in expected.values()}) == len(CASES)
