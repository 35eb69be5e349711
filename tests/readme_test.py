"""The README's Python examples, run in their order in one folder, on a tiny base."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from tests import support
from tests.runs import train, write_mrpc

README = pathlib.Path(__file__).parent.parent / "README.md"
STREAM = [
    ("news", (["a cat sat", "it rain", "the dog ran"], np.array([0, 1, 2]), ["pets", "sky", "b"])),
    ("stars", (["very good", "not good"], np.array([1, 0]), ["bad", "good"])),
]


def _example(beginning):
    code = [
        block
        for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
        if re.search(beginning, block)
    ]
    assert len(code) == 1
    return code[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A newcomer's folder: `base`, and `out/mrpc` with an adapter and a SavedModel."""
    folder = tmp_path_factory.mktemp("newcomer")
    support.write_google(folder / "base", config=support.CONFIG | {"max_position_embeddings": 128})
    train(
        write_mrpc(folder / "MRPC"),
        folder / "base",
        folder / "out" / "mrpc",
        "--do_export",
        "--num_train_epochs=1",
    )
    return folder


def test_many_tasks(folder, monkeypatch):
    monkeypatch.chdir(folder)
    code = _example("AdapterModel").replace("load_base()", "load_base('base')")
    *first, list_and_delete = code.strip().splitlines()
    names = {"stream": STREAM}
    exec("\n".join(first), names)
    model, inputs = names["model"], names["encoder"].inputs(["it rain", "very good"])
    assert model.list_adapters() == ["mrpc", "news", "stars"]
    expected = model(inputs, adapter=["news", "stars"])
    exec(list_and_delete, names)
    assert model.list_adapters() == ["mrpc", "stars"]
    again = abt.AdapterModel(abt.load_base("base"))
    for name in ("news", "stars"):
        again.load_adapter(f"adapters/{name}")
    np.testing.assert_allclose(again(inputs, adapter=["news", "stars"]), expected, atol=1e-6)


def test_the_client(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    exec(_example("import tensorflow as tf, tensorflow_text"), {})
    assert re.match(r"tf.Tensor\(\[b'[01]'\].*\n?.*b'0' b'1'", capsys.readouterr().out, re.S)


def test_from_python(folder, monkeypatch):
    monkeypatch.chdir(folder)
    code = _example("model.fit\\(batches\\)").replace("load_base()", "load_base('base')")
    inputs = abt.TextEncoder(abt.load_base("base").vocabulary, 16).inputs(["it rain", "a cat"])
    names = {"batches": tf.data.Dataset.from_tensors((inputs, np.array([0, 1])))}
    exec(code, names)
    assert np.isfinite(names["model"].history.history["loss"]).all()
