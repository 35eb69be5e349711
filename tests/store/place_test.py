"""What an adapter directory may be written over, and that nothing goes through a link."""

import os
import shutil

import pytest

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.directory import copy_adapter, load_adapter
from adapter_bert_tf.store.files import write_files
from tests.refusals import raises_code
from tests.support import GOLDEN

HUB = GOLDEN.parent / "adapterhub"
FILES = ("adapter_config.json", "adapter.safetensors", "README.md")


@pytest.fixture(scope="module")
def saved(tiny_base_folder, tmp_path_factory):
    """A folder with two adapters of one shape, `a` and `b`."""
    folder = tmp_path_factory.mktemp("saved")
    model = AdapterModel(load_base(tiny_base_folder))
    for name in "ab":
        model.add_adapter(name, ["0", "1"], AdapterConfig(4))
        model.save_adapter(name, folder / name)
    return folder


def tree(folder):
    """What is in a folder, and where its links lead."""
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("left", [FILES, *[(name,) for name in FILES], ()], ids=str)
def test_an_adapter_of_ours_or_a_part_of_it_may_be_replaced(left, saved, tmp_path):
    (tmp_path / "a").mkdir()
    for name in left:
        shutil.copy(saved / "a" / name, tmp_path / "a")
    for name in ("a", "none"):
        assert AdapterDir(str(tmp_path / name)).require_replaceable() is None


FOREIGN = {
    "a readme": {"README.md": b"# My thesis\n"},
    "weights": {"adapter.safetensors": b"\x02\0\0\0\0\0\0\0{}"},
    "another library's": {"adapter_config.json": b'{"model_type": "bert"}'},
    "no JSON": {"adapter_config.json": b"[" * 100_000, "README.md": b"\xff"},
}


@pytest.mark.parametrize("case", FOREIGN)
def test_the_names_alone_make_no_adapter_of_ours(case, tmp_path):
    write_files(str(tmp_path / "a"), FOREIGN[case])
    with raises_code("occupied", "will not be replaced"):
        AdapterDir(str(tmp_path / "a")).require_replaceable()


def test_nothing_is_replaced_where_a_link_is(saved, tmp_path):
    shutil.copytree(saved / "a", tmp_path / "v1")
    (tmp_path / "current").symlink_to("v1")
    (tmp_path / "nowhere").symlink_to("none")
    before = tree(tmp_path)
    for name in ("current", "current/", "current/.", "nowhere"):
        link = f"{tmp_path}/{name}"
        for write in (
            lambda link=link: write_files(link, {"a": b""}),
            lambda link=link: copy_adapter(str(saved / "a"), link, "run"),
            lambda link=link: AdapterDir(link).require_replaceable(),
        ):
            with raises_code("occupied", "symbolic link to "):
                write()
    assert tree(tmp_path) == before


def test_folders_above_may_be_links(saved, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    for run in ("1", "2"):
        copy_adapter(str(saved / "a"), str(tmp_path / "out" / "a"), run)
        assert AdapterDir(str(tmp_path / "disk" / "a")).run() == run
    assert sorted(os.listdir(tmp_path / "disk")) == ["a"]
    assert load_adapter(str(tmp_path / "disk" / "a")).config["run"] == "2"


def test_nothing_is_deleted_through_a_link(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    for link in ("link", "slash", "folder/inside", "broken"):
        target = "none" if link == "broken" else tmp_path / "precious"
        (tmp_path / link).symlink_to(target)
    for path in ("link", "slash/", "folder", "broken", "none"):
        storage.rmtree(f"{tmp_path}/{path}")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert (tmp_path / "precious" / "thesis.txt").exists()


def test_clearing_an_output_folder_leaves_links_and_others_files(saved, tmp_path):
    shutil.copytree(saved / "a", tmp_path / "v1")
    for name in ("linked", "mixed", "ours", "theirs", "leftover"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked" / "adapter").symlink_to("../v1")
    (tmp_path / "leftover" / "adapter.tmp-0123456789ab").symlink_to("../v1")
    shutil.copytree(saved / "a", tmp_path / "mixed" / "adapter")
    (tmp_path / "mixed" / "adapter" / "thesis.txt").write_text("x")
    write_files(str(tmp_path / "theirs" / "adapter"), FOREIGN["another library's"])
    before = tree(tmp_path)
    shutil.copytree(saved / "a", tmp_path / "ours" / "adapter")
    for name in ("linked", "mixed", "ours", "theirs"):
        OutputDir(str(tmp_path / name), contents_of()).clear()
    assert tree(tmp_path) == before
    with OutputDir(str(tmp_path / "leftover"), contents_of()).lock():
        pass
    assert tree(tmp_path / "v1") and not tree(tmp_path / "leftover")


COMMANDS = {
    "average": ("a", "b"),
    "import": (str(HUB / "pfeiffer"), f"--base_model={HUB / 'base'}"),
    "export": ("a",),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("there", ["adapter", "file", "link"])
def test_the_store_replaces_nothing(command, there, saved, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(saved)
    place = tmp_path / "there"
    if there == "file":
        place.write_text("x")
    elif there == "link":
        place.symlink_to(saved / "a")
    else:
        shutil.copytree(saved / "b", place)
    before = tree(tmp_path)
    assert main([command, *COMMANDS[command], f"--output={place}"]) == 1
    assert "will not be replaced" in capsys.readouterr().err
    assert tree(tmp_path) == before


def test_the_store_writes_into_an_empty_folder(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(saved)
    base = f"--base_model={HUB / 'base'}"
    for name in ("mean", "ours", "theirs"):
        (tmp_path / name).mkdir()
    assert main(["average", "a", "b", f"--output={tmp_path}/mean"]) == 0
    assert main(["import", str(HUB / "pfeiffer"), f"--output={tmp_path}/ours", base]) == 0
    assert main(["export", f"{tmp_path}/ours", f"--output={tmp_path}/theirs", base]) == 0
    assert all(os.listdir(tmp_path / name) for name in ("mean", "ours", "theirs"))


ABOVE = {
    "a file": lambda path: path.write_text("x"),
    "a broken link": lambda path: path.symlink_to("no"),
}


@pytest.mark.parametrize("kind", ABOVE)
def test_what_is_above_must_be_a_folder(kind, saved, tmp_path, capsys):
    ABOVE[kind](tmp_path / "above")
    before = tree(tmp_path)
    output = f"{tmp_path}/above/b/c"
    assert main(["average", f"{saved}/a", f"{saved}/b", f"--output={output}"]) == 1
    assert f"'{output}' cannot be made: '{tmp_path}/above' is {kind}" in capsys.readouterr().err
    assert tree(tmp_path) == before
