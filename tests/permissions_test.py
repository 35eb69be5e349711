"""Files and folders with real permissions: what is closed is named, and is not called damaged."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from adapter_bert_tf import permissions, storage
from adapter_bert_tf.cli.store import main as store
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.atomic import require_creatable
from adapter_bert_tf.output.lock import locked
from adapter_bert_tf.predict.tables import answer_file, check_places
from adapter_bert_tf.run.checks.paths import check_writable
from adapter_bert_tf.store import load_adapter
from tests.refusals import raises_code
from tests.support import GOLDEN

ADAPTER = GOLDEN.parent / "written_before" / "adapters" / "houlsby"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Closed files and folders in the folder of this process; skips where root may do all."""
    monkeypatch.chdir(tmp_path)
    for name in ("closed", "of_closed_files"):
        shutil.copytree(ADAPTER, tmp_path / name)
    for name in ("open.csv", "closed.csv"):
        pathlib.Path(name).write_text("text\na\n")
    pathlib.Path("full").mkdir()
    modes = {"closed.csv": 0, "closed": 0, "of_closed_files/adapter.safetensors": 0, "full": 0o555}
    for name, mode in modes.items():
        pathlib.Path(name).chmod(mode)
    try:
        pathlib.Path("closed.csv").read_bytes()
        pytest.skip("this user may read everything")
    except PermissionError:
        yield
    finally:
        for name in modes:
            pathlib.Path(name).chmod(0o755)


def answer(path, output):
    answer_file(path, output, ["label"], lambda names: ["text"], lambda rows: [{}] * len(rows))


def hold(folder):
    with locked(folder):
        pass


CLOSED = {  # The act, and what its message names.
    "a table": (lambda: answer("closed.csv", "o.csv"), "'closed.csv'", "read"),
    "a table's place": (lambda: answer("open.csv", "full/o.csv"), "/full'", "written"),
    "a place, before what takes long": (
        lambda: check_places("open.csv", "full/o.csv", False),
        "/full'",
        "written",
    ),
    "a new adapter": (lambda: require_creatable("full/a/b"), "/full'", "written"),
    "a lock": (lambda: hold("full"), "full'", "written"),
    "a new folder": (lambda: hold("full/new"), "'full'", "written"),
    "an output": (
        lambda: check_writable("--output_dir=full", "full"),
        "--output_dir=full",
        "written",
    ),
    "an adapter": (lambda: load_adapter("closed"), "'closed'", "read"),
    "below one": (lambda: load_adapter("closed/a/b"), "'closed'", "read"),
    "its weights": (
        lambda: load_adapter("of_closed_files"),
        "of_closed_files/adapter.safetensors",
    ),
}


@pytest.mark.parametrize("case", CLOSED)
def test_what_is_closed_is_named(case, places):
    act, *names = CLOSED[case]
    with raises_code("unavailable", *names):
        act()


def test_commands_of_the_store_name_it(places, capsys):
    assert store(["list", "closed"]) == 1
    assert "the folder 'closed' may not be read" in capsys.readouterr().err
    assert store(["list", "."]) == 1
    assert "./closed: refused. Permission denied: the folder './closed'" in capsys.readouterr().out
    assert store(["verify", "closed", "of_closed_files"]) == 1
    assert "damaged" not in (said := capsys.readouterr().out) and said.count("refused") == 2


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root reads what is closed to it, and setpriv takes that away",
)
@pytest.mark.long
def test_the_same_of_a_root_that_may_not_read_everything():
    """The tests above, which this user skips."""
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "pytest"]
    asked = ["-v", "-p", "no:cacheprovider", __file__, "-k", "is_named or name_it"]
    done = subprocess.run([*without, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{len(CLOSED) + 1} passed" in done.stdout, done.stdout


def test_an_open_folder_and_other_errors_are_left_alone(tmp_path):
    permissions.require_open(str(tmp_path / "none"))
    permissions.require_open("gs://bucket/none")
    with pytest.raises(FileNotFoundError), permissions.denied_as_input_error():
        (tmp_path / "none").read_bytes()


def test_a_folder_that_seems_empty_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(permissions, "_denied_uses", lambda place: ["read"])
    with pytest.raises(
        InputError, match=f"the folder {str(tmp_path)!r} may not be read by this us"
    ):
        load_adapter(str(tmp_path / "adapter"))


def test_a_file_that_cannot_be_opened(tmp_path, monkeypatch):
    def closed(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(storage, "read_text", closed)
    shutil.copytree(ADAPTER, tmp_path / "a")
    with raises_code("unavailable", "config.json"):
        load_adapter(str(tmp_path / "a"))


def test_a_path_is_as_good_as_its_text(tmp_path):
    permissions.require_open(tmp_path / "none")
    shutil.copytree(ADAPTER, tmp_path / "a")
    assert load_adapter(tmp_path / "a").weights
