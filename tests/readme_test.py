"""Examples of the README and the guides, run on a tiny base, and the demo on the default one."""

import functools
import glob
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.cli import main as cli
from tests import support
from tests.runners.squad_test import write as write_squad
from tests.runners.tagging import corpus
from tests.runs import command, train, write_mrpc

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
    names = {}
    exec(_example("docs/serving.md", "def int32"), names)
    assert re.match(r"tf.Tensor\(\[b'[01]'\]", capsys.readouterr().out)
    for values in (np.array([2**33 + 7]), np.array([1.7]), [2**33]):
        with pytest.raises(ValueError):
            names["int32"](values)


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


def _shell(page):
    """The commands of a page's plain code blocks, one list of words each, in their order."""
    blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.split(" ")[0] in RUNNERS]
    return [shlex.split(os.path.expandvars(line), comments=True) for line in commands]


def _classify(words):
    return command(*words, *TINY, "--max_seq_length=16", folder=os.getcwd())


def _squad(words):
    lengths = ["--max_seq_length=20", "--max_query_length=6", "--doc_stride=4"]
    return _run_script("run_squad.py", [*words, *TINY, *lengths]).returncode


def _adapter_bert(words):
    name, *rest = words
    if name == "tag":
        lengths = ["--max_seq_length=12", "--stride=3"]
        return _run_script("run_tagger.py", [*rest, *TINY, *lengths]).returncode
    return _classify(rest) if name == "classify" else cli.main([*words, "--base_model=base"])


RUNNERS = {
    "run_classifier.py": _classify,
    "run_squad.py": _squad,
    "adapter-bert": _adapter_bert,
}
TINY = ["--base_model=base", "--num_train_epochs=1", "--train_batch_size=4"]


def _run_script(name, words, **options):
    return subprocess.run(
        [sys.executable, ROOT / name, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.slow
def test_the_commands_of_the_readme(tmp_path, monkeypatch):
    """The commands of the section Use, in their order, in one folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUE_DIR", str(tmp_path / "glue"))
    support.write_google(tmp_path / "base")
    write_mrpc(tmp_path / "glue" / "MRPC")
    (tmp_path / "reviews").mkdir()
    rows = "".join(f"a cat {i},{i % 2 + 1}\n" for i in range(20))
    (tmp_path / "reviews" / "train.csv").write_text("text,stars\n" + rows)
    (tmp_path / "new.csv").write_text("text\na dog\n")
    for name in ("train", "dev"):
        write_squad(tmp_path, name).rename(tmp_path / f"{name}-v1.1.json")
    corpus.write(tmp_path / "names")
    ran = []
    for name, *words in _shell("README.md"):
        arguments = [path for word in words for path in sorted(glob.glob(word)) or [word]]
        assert not RUNNERS[name](arguments), words
        ran.append(name)
    assert len(ran) == 6
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 2
    signatures = tf.saved_model.load("served").signatures
    assert {"mrpc", "reviews", "tasks"} <= set(signatures)
    assert "exact_match" in (tmp_path / "out/squad/eval_results.txt").read_text()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder and the output of a run with the flags of `make demo`."""
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    _, name, *flags = shlex.split(recipe.replace("\\\n", " "))
    folder = tmp_path_factory.mktemp("demo")
    done = _run_script(name, flags, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.slow
def test_the_demo_prints_what_the_readme_shows(demo):
    """Numbers may have other digits on another machine."""
    (shown,) = re.findall(r"```\n(\*{5} Eval.*?)```", (ROOT / "README.md").read_text(), re.S)
    without_numbers = functools.partial(re.sub, r"\d[\d.e-]*", "#")
    assert set(without_numbers(shown).splitlines()) <= set(without_numbers(demo[1]).splitlines())


@pytest.mark.slow
def test_the_demos_adapter_answers_as_the_readme_shows(demo, monkeypatch, capsys):
    monkeypatch.chdir(demo[0])
    ((line, answer),) = re.findall(
        r"^\$ \.venv/bin/adapter-bert (.*)\n(.*)$", (ROOT / "README.md").read_text(), re.M
    )
    assert cli.main(shlex.split(line)) == 0
    assert json.loads(capsys.readouterr().out)["label"] == json.loads(answer)["label"]
