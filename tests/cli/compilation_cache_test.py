"""XLA's flags and its cache of compiled programs, with made-up GPUs and with programs of a CPU."""

import os
import subprocess
import sys

import pytest

from adapter_bert_tf.cli import compilation_cache

DIRECTORY = "--tf_xla_persistent_cache_directory="
PROGRAM = b"\x0a\x02ab\x12\x81\x01" + b"h" * 129 + b"\x1a\x03xyz"  # By hand.
COMPILE = """
import tensorflow as tf
tf.function(lambda x: tf.matmul(x, x), jit_compile=True)(tf.ones([8, 8]))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of caches, on a machine with a GPU."""
    monkeypatch.setenv("ADAPTER_BERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation_cache, "DRIVER_FILE", str(tmp_path / "version"))
    monkeypatch.setattr(compilation_cache, "GPU_FILES", str(tmp_path / "gpus" / "*"))
    monkeypatch.setattr(compilation_cache, "QUERY", ("no-such-program",))
    (tmp_path / "version").write_text("NVRM version: 550.54\n")
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "0").write_text("Model: \t\t NVIDIA H100\nIRQ: \t\t 34\n")
    return tmp_path / "cache"


def flags(**environ):
    deterministic = environ.pop("deterministic", False)
    compilation_cache.use(environ, deterministic)
    return environ


def programs(environ):
    (value,) = [
        word for word in environ.get("TF_XLA_FLAGS", "").split() if word.startswith(DIRECTORY)
    ]
    return value.removeprefix(DIRECTORY)


def test_a_gpu_gets_a_cache_in_the_folder_of_caches(cache):
    environ = flags()
    assert programs(environ).startswith(str(cache / "xla"))
    assert "--xla_gpu_enable_triton_gemm=false" in environ["XLA_FLAGS"]
    assert f"--xla_gpu_per_fusion_autotune_cache_dir={cache / 'xla'}" in environ["XLA_FLAGS"]
    folder = os.path.dirname(programs(environ))
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert programs(flags()) == programs(environ)  # The same again.


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_without_a_gpu_nothing_is_set(hidden, cache, tmp_path):
    assert flags(CUDA_VISIBLE_DEVICES=hidden) == {"CUDA_VISIBLE_DEVICES": hidden}
    (tmp_path / "gpus" / "0").unlink()
    assert flags() == {}
    assert not cache.exists()


def test_the_flags_of_the_user_come_last(cache):
    own = {
        "XLA_FLAGS": "--xla_gpu_enable_triton_gemm=true",
        "TF_XLA_FLAGS": f"{DIRECTORY}/own",
    }
    environ = flags(**own)
    for name, value in own.items():
        assert environ[name].split()[-1] == value


@pytest.mark.parametrize("reason", [{"deterministic": True}, {"TF_DETERMINISTIC_OPS": "1"}])
def test_a_deterministic_run_uses_no_programs_of_other_runs(reason, cache):
    environ = flags(**reason)
    assert "TF_XLA_FLAGS" not in environ and "autotune_cache" not in environ["XLA_FLAGS"]


@pytest.mark.parametrize(
    ("file", "text", "is_the_same"),
    [
        ("version", "NVRM version: 560.28\n", False),
        ("gpus/0", "Model: \t\t Tesla T4\nIRQ: \t\t 34\n", False),
        ("gpus/0", "Model: \t\t NVIDIA H100\nIRQ: \t\t 35\n", True),  # After a reboot.
    ],
)
def test_another_gpu_has_other_programs(file, text, is_the_same, cache, tmp_path):
    before = programs(flags())
    (tmp_path / file).write_text(text)
    assert (programs(flags()) == before) == is_the_same
    assert programs(flags(LD_LIBRARY_PATH="/other/cuda")) != before


def make_writable(folder):
    folder.chmod(0o770)


def make_link(folder):
    folder.rmdir()
    folder.with_name("other").mkdir()
    folder.symlink_to(folder.with_name("other"))


def make_file(folder):
    folder.rmdir()
    folder.write_text("")


@pytest.mark.parametrize("change", [make_writable, make_link, make_file])
def test_a_folder_that_others_can_change_is_not_used(change, cache):
    flags()
    (folder,) = (cache / "xla").iterdir()
    change(folder)
    assert "TF_XLA_FLAGS" not in flags()


def test_a_full_disk_has_no_cache(cache, monkeypatch):
    monkeypatch.setattr(compilation_cache, "LEAST_FREE", 1 << 80)
    assert "TF_XLA_FLAGS" not in flags()


def test_a_path_that_flags_cannot_name_has_no_cache(cache, monkeypatch):
    monkeypatch.setenv("ADAPTER_BERT_CACHE", f"{cache} of mine")
    assert "TF_XLA_FLAGS" not in flags()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (PROGRAM, True),
        (PROGRAM[:-1], False),
        (PROGRAM[:-5], False),
        (PROGRAM[:3], False),
        (b"", False),
        (b"\0" * 200, False),
        (b"\xff" * 200, False),
        (PROGRAM + b"\0", False),
    ],
)
def test_incomplete_programs_are_removed(content, expected, cache):
    folder = compilation_cache.pathlib.Path(programs(flags()))
    folder.mkdir()
    (folder / "a.pb").write_bytes(content)
    assert compilation_cache.is_complete(folder / "a.pb") == expected
    flags()
    assert (folder / "a.pb").exists() == expected


def test_the_oldest_programs_are_removed(cache, monkeypatch):
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", 2 * len(PROGRAM))
    folder = compilation_cache.pathlib.Path(programs(flags()))
    folder.mkdir()
    for age, name in enumerate(("old", "older", "new")):
        (folder / f"{name}.pb").write_bytes(PROGRAM)
        os.utime(folder / f"{name}.pb", (0, 1000 - age if age < 2 else 2000))
    flags()
    assert sorted(path.name for path in folder.iterdir()) == ["new.pb", "old.pb"]


@pytest.mark.long
def test_programs_that_tensorflow_writes_are_complete(cache, tmp_path):
    """On a CPU, which a user's flag allows; a second process compiles nothing new."""
    own = "--tf_xla_persistent_cache_device_types=CPU"
    environ = flags(TF_XLA_FLAGS=own) | {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    folder, written = compilation_cache.pathlib.Path(programs(environ)), []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COMPILE], env=os.environ | environ, check=True)
        written.append({path: path.stat().st_mtime_ns for path in folder.iterdir()})
    assert written[0] == written[1] and len(written[0]) == 1
    (path,) = written[0]
    assert compilation_cache.is_complete(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert not compilation_cache.is_complete(path)
