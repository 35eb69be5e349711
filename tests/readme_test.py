"""Python examples of the README and the guides, run in one folder, on a tiny base."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from tests import support
from tests.runs import train, write_mrpc

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).parent.parent


def _example(page, beginning):
    code = [
        block
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
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
    code = _example("docs/many_tasks.md", "AdapterModel").replace(
        "load_base()", "load_base('base')"
    )
    *first, list_and_delete = code.strip().splitlines()
    names = {}
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
    exec(_example("docs/serving.md", "import tensorflow as tf, tensorflow_text"), {})
    assert re.match(r"tf.Tensor\(\[b'[01]'\].*\n?.*b'0' b'1'", capsys.readouterr().out, re.S)


def test_a_loop_of_ones_own(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    exec(
        _example("docs/python.md", "select_trained").replace("load_base()", "load_base('base')"),
        names,
    )
    assert np.isfinite(names["model"].history.history["loss"]).all()


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_training_in_one_call(page, folder, monkeypatch, capsys):
    (folder / page).mkdir(parents=True)
    monkeypatch.chdir(folder / page)
    names = {}
    code = _example(page, "abt.train\\(").replace(
        "num_train_epochs=5", f"base_model='{folder}/base'"
    )
    exec(code, names)
    assert re.search(r"\n\{'label': '(good|bad)', 'prob.*\}\n", capsys.readouterr().out)
    assert (
        abt.Predictor("adapters/reviews", base=str(folder / "base")).adapters
        == names["task"].adapters
    )
    assert tf.saved_model.load("served/reviews").signatures["serving_default"]


def test_a_predictor(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "pairs.csv").write_text("text_a,text_b,more\na cat,a dog,1\nit rain,it rain,2\n")
    code = _example("docs/python.md", "Predictor\\(").replace(
        'adapter")', "adapter\", base='base')"
    )
    exec(code, names := {})
    assert names["predictor"].adapters == ["mrpc"]
    assert len((folder / "answers.csv").read_text().splitlines()) == 3
