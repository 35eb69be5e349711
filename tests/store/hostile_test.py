"""Damaged and hostile adapter directories: each is refused, with a message that names the problem.

Damage leaves the digests as they were; an attacker writes new ones (`sealed`).
"""

import json
import os
import random
import resource
import struct

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.store import load_adapter, save_adapter, schema
from adapter_bert_tf.store.weights import digest
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.refusals import raises_code

ADAPTER = AdapterConfig(bottleneck_size=4, init_scale=0.3)
DEEP = "[" * 100_000
SPANS = dict(TASK_TYPES["span"].inputs) | {"max_seq_length": 15, "max_query_length": 4}
TAGS = dict(TASK_TYPES["tags"].inputs) | {"max_seq_length": 15}
SIZED = {
    "vocab_size": 9,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 2,
    "inner_dim": 32,
    "type_vocab_size": 2,
    "max_sequence_length": 24,
}


@pytest.fixture(scope="module")
def good(tiny_base_folder):
    """(config, bytes of the weights, arrays) of a sound adapter."""
    base = load_base(tiny_base_folder)
    model = Classifier(base.build_encoder(ADAPTER), 2)
    trained = select_trained(model, Tuning("adapters"))
    arrays = {name: variable.numpy() for name, variable in trained.items()}
    content = safetensors.numpy.save(arrays)
    return schema.seal(support.adapter_config(base, ADAPTER), digest(content)), content, arrays


def _write(folder, config, content):
    folder.mkdir()
    text = config if isinstance(config, bytes) else json.dumps(config).encode()
    (folder / "adapter_config.json").write_bytes(text)
    (folder / "adapter.safetensors").write_bytes(content)
    return str(folder)


def test_the_sound_one_is_read(good, tmp_path):
    config, content, arrays = good
    saved = load_adapter(_write(tmp_path / "a", config, content))
    np.testing.assert_equal(saved.weights, arrays)


# Changes of the config by an attacker, who seals it again; and what is said.
CONFIGS = {
    "no labels": ({"labels": []}, "invalid: labels"),
    "numbers as labels": ({"labels": [0, 1]}, "invalid: different strings"),
    "equal labels": ({"labels": ["0", "0"]}, "invalid: different strings"),
    "another label": ({"labels": ["0", "1", "2"]}, "damaged: head"),
    "labels of another type": ({"labels": "01"}, "damaged: misses"),
    "unknown head": ({"head": "os.system"}, "invalid: head"),
    "unknown scheme": ({"head": "tags", "inputs": TAGS | {"scheme": "x"}}, "invalid: scheme"),
    "long scheme": ({"head": "tags", "inputs": TAGS | {"scheme": "x" * 999}}, "invalid: inputs"),
    "scheme of another type": (
        {"head": "tags", "inputs": TAGS | {"scheme": []}},
        "invalid: inputs",
    ),
    "stride below 0": ({"head": "tags", "inputs": TAGS | {"stride": -1}}, "invalid: stride"),
    "unknown method": ({"tuning": {"method": "lora"}}, "invalid: tuning"),
    "unknown tuning key": ({"tuning": {"method": "adapters", "x": 1}}, "invalid: 'x'"),
    "tuning of another type": ({"tuning": [1]}, "damaged: misses"),
    "no adapters": ({"adapter": None}, "invalid: there is no such part"),
    "another size": (
        {"adapter": ADAPTER.__dict__ | {"bottleneck_size": 8}},
        "damaged: must have the shape",
    ),
    "enormous size": (
        {"adapter": ADAPTER.__dict__ | {"bottleneck_size": 10**12}},
        "invalid: at most 65536",
    ),
    "wide": ({"adapter": ADAPTER.__dict__ | {"bottleneck_size": 60_000}}, "damaged: the shape"),
    "size of another type": ({"adapter": {"bottleneck_size": "4"}}, "invalid: positive integer"),
    "unknown adapter key": ({"adapter": {"code": "x"}}, "invalid: adapter"),
    "sublayers of sublayers": (
        {"adapter": {"sublayers": [["attention"]]}},
        "invalid: sublayers",
    ),
    "layers that are not there": ({"adapter": {"layers": [7]}}, "invalid: below 2"),
    "no LayerNorms": (
        {"tuning": {"method": "adapters", "train_layer_norm": False}},
        "damaged: LayerNorm",
    ),
    "metric of another type": ({"metric": {"name": 1}}, "invalid: metric"),
    "metric of nothing": ({"metric": {}}, "invalid: metric"),
    "metric without a split": ({"metric": {"name": "f1", "value": 0.5}}, "invalid: metric"),
    "metric that is no number": (
        {"metric": {"name": "f1", "value": float("nan"), "split": "dev"}},
        "invalid: metric",
    ),
    "two methods": ({"method": "full"}, "invalid: contradict each other"),
    "factor of no number": (
        {"adapter": ADAPTER.__dict__ | {"scale": float("nan")}},
        "invalid: scale",
    ),
    "enormous factor": ({"adapter": ADAPTER.__dict__ | {"scale": 1e300}}, "invalid: scale"),
    "factor of text": ({"adapter": ADAPTER.__dict__ | {"scale": "4"}}, "invalid: scale"),
    "switch of text": (
        {"adapter": ADAPTER.__dict__ | {"normalize_input": "no"}},
        "invalid: true or false",
    ),
    "a sublayer twice": (
        {"adapter": ADAPTER.__dict__ | {"sublayers": ["attention"] * 2}},
        "invalid: once",
    ),
    "no texts": ({"inputs": {"texts": 0, "max_seq_length": 16}}, "invalid: texts"),
    "many texts": ({"inputs": {"texts": 9, "max_seq_length": 16}}, "invalid: texts"),
    "negative length": ({"inputs": {"texts": 1, "max_seq_length": -9}}, "invalid: room for them"),
    "longer than the base": ({"inputs": {"texts": 1, "max_seq_length": 25}}, "invalid: at most 24"),
    "digest of another type": ({"base": SIZED | {"weights_sha256": 3}}, "invalid: base"),
    "windows that stand still": (
        {"head": "span", "inputs": SPANS | {"doc_stride": 0}},
        "invalid: doc_stride",
    ),
    "no room for a context": (
        {"head": "span", "inputs": SPANS | {"max_query_length": 12}},
        "invalid: max_query_length",
    ),
    "no answers": ({"head": "span", "inputs": SPANS | {"n_best_size": 0}}, "invalid: n_best_size"),
    "task of another type": ({"task": ["mrpc"]}, "damaged: misses"),
    "no length": ({"inputs": {"texts": 1}}, "invalid: inputs"),
    "enormous length": ({"inputs": {"texts": 1, "max_seq_length": 10**12}}, "invalid: inputs"),
    "texts of another type": ({"inputs": {"texts": True, "max_seq_length": 8}}, "invalid: inputs"),
    "base of another type": ({"base": []}, "damaged: misses"),
    "regression with labels": ({"regression": True}, "invalid: a regression has none"),
    "a scale of 290 digits": (
        {"adapter": ADAPTER.__dict__ | {"init_scale": 10**290}},
        "invalid: init_scale",
    ),
    "a factor of 290 digits": (
        {"adapter": ADAPTER.__dict__ | {"scale": -(10**290)}},
        "invalid: scale",
    ),
    "a layer of 290 digits": (
        {"adapter": ADAPTER.__dict__ | {"layers": [10**290]}},
        "invalid: layers",
    ),
    "a length of 290 digits": (
        {"inputs": {"texts": 1, "max_seq_length": 10**290}},
        "invalid: inputs",
    ),
    "half a character in a label": ({"labels": ["a\ud800", "b"]}, "damaged: half of a character"),
    "half a character in a task": ({"task": "\udfff"}, "damaged: half of a character"),
    "half a character in a metric": (
        {"metric": {"name": "\ud800", "value": 0.5, "split": "dev"}},
        "damaged: half of a character",
    ),
    "half a character in a version": (
        {"versions": {"\ud800": "1"}},
        "damaged: half of a character",
    ),
    "tuning without a method": ({"tuning": {}}, "invalid: tuning"),
    "base of sizes alone": ({"base": SIZED}, "invalid: lower_case"),
    "case of text": ({"base": SIZED | {"lower_case": "yes"}}, "invalid: 'yes'"),
    "base without a digest": (
        {"base": SIZED | {"lower_case": True, "activation": "gelu", "norm_epsilon": 1e-12}},
        "invalid: weights_sha256",
    ),
    "a step of text": ({"global_step": "1\neval_accuracy = 1.0"}, "damaged: 'global_step'"),
    "a seed of a list": ({"split_seed": [0]}, "damaged: 'split_seed'"),
    "a table of a list": ({"table": ["text"]}, "invalid: table"),
    "a table of another flag": ({"table": {"output_dir": "/"}}, "invalid: table"),
    "a table's column of a number": ({"table": {"label_column": 3}}, "invalid: table"),
    "a table's header of a number": ({"table": {"header": 1}}, "invalid: table"),
}
SIZES = {
    "enormous base": {"hidden_size": 10**9},
    "negative base": {"num_layers": -1},
    "base of text": {"num_layers": "2"},
    "base of true": {"num_layers": True},
    "heads that do not divide": {"num_attention_heads": 3},
    "many layers": {"num_layers": 10**7},
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_sealed_config_that_cannot_be(case, good, tmp_path):
    change, message = CONFIGS[case]
    config = schema.seal(good[0] | change, good[0]["weights_sha256"])
    with raises_code(message):
        load_adapter(_write(tmp_path / "a", config, good[1]))


@pytest.mark.parametrize("case", SIZES)
def test_sealed_sizes_that_cannot_be(case, good, tmp_path):
    base = good[0]["base"] | SIZES[case]
    config = schema.seal(good[0] | {"base": base}, good[0]["weights_sha256"])
    with raises_code("invalid", "adapter_config.json"):
        load_adapter(_write(tmp_path / "a", config, good[1]))


def _header(content):
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _with_header(content, change):
    header, rest = _header(content)
    text = json.dumps(change(header)).encode()
    return struct.pack("<Q", len(text)) + text + rest


def _renamed(old, new):
    return lambda header: {new if name == old else name: value for name, value in header.items()}


def _entry(name, **values):
    return lambda header: header | {name: header[name] | values}


def _saved(arrays, **changes):
    return safetensors.numpy.save(arrays | changes)


def _twice(content):
    header, rest = _header(content)
    text = (json.dumps(header)[:-1] + "," + json.dumps(header)[1:]).encode()
    return struct.pack("<Q", len(text)) + text + rest


KERNEL = "adapters/layer_0/attention/down_kernel"
# Weights by an attacker, who seals them; and what is said.
WEIGHTS = {
    "NaN": (lambda c, a: _saved(a, **{KERNEL: a[KERNEL] * np.nan}), f"invalid: {KERNEL}"),
    "infinity": (lambda c, a: _saved(a, **{KERNEL: a[KERNEL] + np.inf}), f"invalid: {KERNEL}"),
    "integers": (lambda c, a: _saved(a, **{KERNEL: a[KERNEL].astype("i4")}), "damaged: 'F32'"),
    "float64": (lambda c, a: _saved(a, **{KERNEL: a[KERNEL].astype("f8")}), "damaged: 'F32'"),
    "transposed": (
        lambda c, a: _saved(a, **{KERNEL: np.ascontiguousarray(a[KERNEL].T)}),
        "damaged: shape",
    ),
    "wider": (
        lambda c, a: _saved(a, **{KERNEL: np.zeros((16, 5), "f4")}),
        "damaged: must have the shape",
    ),
    "one more": (lambda c, a: _saved(a, spy=a[KERNEL]), "damaged: 'spy'"),
    "of the base": (
        lambda c, a: _saved(a, **{"bert/pooler/dense/bias": np.zeros(16, "f4")}),
        "damaged: adapter.safetensors",
    ),
    "no head": (
        lambda c, a: safetensors.numpy.save({k: v for k, v in a.items() if "head" not in k}),
        "damaged: 'head/bias'",
    ),
    "a path": (
        lambda c, a: _with_header(c, _renamed(KERNEL, "../../../etc/passwd")),
        "damaged: Unknown",
    ),
    "layer 9": (
        lambda c, a: _with_header(c, _renamed(KERNEL, KERNEL.replace("0", "9"))),
        "damaged: layer_9",
    ),
    "10 GB of header": (
        lambda c, a: struct.pack("<Q", 10 << 30) + c[8:],
        "damaged: declares a header",
    ),
    "header of all bits": (lambda c, a: b"\xff" * 8 + c[8:], "damaged: declares a header"),
    "offsets past the end": (
        lambda c, a: _with_header(c, _entry(KERNEL, data_offsets=[0, 1 << 40])),
        "damaged: damaged",
    ),
    "offsets backwards": (
        lambda c, a: _with_header(c, _entry(KERNEL, data_offsets=[64, 0])),
        "damaged: damaged",
    ),
    "enormous shape": (
        lambda c, a: _with_header(c, _entry(KERNEL, shape=[1 << 40, 1 << 40])),
        "damaged: must have the shape",
    ),
    "shape of text": (
        lambda c, a: _with_header(c, _entry(KERNEL, shape="16")),
        "damaged: must have the",
    ),
    "no shape": (
        lambda c, a: _with_header(c, _entry(KERNEL, shape=None)),
        "damaged: header cannot be read",
    ),
    "a list of tensors": (
        lambda c, a: _with_header(c, lambda header: list(header)),
        "damaged: adapter.safetensors",
    ),
    "a deep header": (
        lambda c, a: struct.pack("<Q", len(DEEP)) + DEEP.encode(),
        "damaged: cannot be read",
    ),
    "a name twice": (lambda c, a: _twice(c), "damaged: names"),
    "more than it says": (lambda c, a: c + b"spy", "damaged: it should have"),
    "empty": (lambda c, a: b"", "damaged: declares a header"),
    "a pickle": (lambda c, a: b"\x80\x04\x95" + c, "damaged: declares a header"),
    "overlapping tensors": (
        lambda c, a: _with_header(
            c,
            lambda header: (
                header
                | {
                    KERNEL: header[KERNEL]
                    | {"data_offsets": header[KERNEL.replace("0", "1")]["data_offsets"]}
                }
            ),
        ),
        "damaged: damaged",
    ),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_sealed_weights_that_cannot_be(case, good, tmp_path):
    config, content, arrays = good
    change, message = WEIGHTS[case]
    content = change(content, arrays)
    with raises_code(message):
        load_adapter(_write(tmp_path / "a", schema.seal(config, digest(content)), content))


def _flip(data, rng):
    place, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
    return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]


def _cut(data, rng):
    return data[: rng.randrange(len(data))]


def _swap_layers(content, rng):
    pairs = [("layer_0", "layer_1"), ("attention/", "feed_forward/")]
    first, second = rng.choice(pairs)

    def other(name):
        return name.replace(first, "?").replace(second, first).replace("?", second)

    return _with_header(content, lambda header: {other(name): v for name, v in header.items()})


def _other_types(config, rng):
    values = json.loads(config)
    name = rng.choice([name for name in values if name not in ("split_seed",)])
    values[name] = rng.choice([None, 3, -1.5, "x", [], {}, [[]], {"a": 1}, True])
    return json.dumps(values).encode()


DAMAGE = {
    "config flipped": (_flip, None),
    "config cut": (_cut, None),
    "config typed": (_other_types, None),
    "weights flipped": (None, _flip),
    "weights cut": (None, _cut),
    "weights swapped": (None, _swap_layers),
}


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_refused(kind, seed, good, tmp_path):
    rng = random.Random(f"{kind} {seed}")
    of_config, of_weights = DAMAGE[kind]
    config, content, _ = good
    text = json.dumps(config, indent=2).encode()
    damaged = of_config(text, rng) if of_config else text
    weights = of_weights(content, rng) if of_weights else content
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raises_code("damaged"):
        load_adapter(_write(tmp_path / "a", damaged, weights))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # Kilobytes.


def test_a_file_that_is_too_large_is_not_read(good, tmp_path):
    folder = _write(tmp_path / "a", good[0], good[1])
    with (tmp_path / "a" / "adapter.safetensors").open("ab") as file:
        for size in (1 << 30, 10 << 30):
            file.truncate(size)  # A hole: takes no space.
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with raises_code("damaged", f"{size:,}"):
                load_adapter(folder)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18
    (tmp_path / "a" / "adapter_config.json").write_text(DEEP * 20)
    with raises_code("damaged", "adapter_config.json"):
        load_adapter(folder)


@pytest.mark.parametrize(
    "config", [DEEP, "9" * 10_000, '{"a": ' + "9" * 400 + "}", "[1]", "null", "", "{", "\ud800"]
)
def test_what_is_no_config(config, good, tmp_path):
    with raises_code("damaged", "adapter_config.json"):
        load_adapter(_write(tmp_path / "a", config.encode("utf-8", "surrogatepass"), good[1]))


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter.safetensors"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_regular_files_are_read(kind, name, good, tmp_path):
    folder = _write(tmp_path / "a", good[0], good[1])
    path = tmp_path / "a" / name
    path.rename(tmp_path / "elsewhere")
    {
        "link": lambda: path.symlink_to(tmp_path / "elsewhere"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    with raises_code("damaged", "not a regular file"):
        load_adapter(folder)


def test_a_name_that_stands_twice(good, tmp_path):
    text = json.dumps(good[0])[:-1] + ', "task": "other"}'
    with raises_code("damaged", "adapter_config.json"):
        load_adapter(_write(tmp_path / "a", text.encode(), good[1]))


def test_nothing_is_written_that_would_not_be_read(good, tmp_path):
    config, _, arrays = good
    with raises_code("invalid", "labels"):
        save_adapter(str(tmp_path / "a"), config | {"labels": ["0", "0"]}, arrays)
    with raises_code("damaged", "down_kernel"):
        save_adapter(str(tmp_path / "a"), config, arrays | {KERNEL: arrays[KERNEL].T})
    with raises_code("damaged", "Missing"):
        save_adapter(str(tmp_path / "a"), config, {KERNEL: arrays[KERNEL]})
    with raises_code("invalid", "down_kernel"):
        save_adapter(str(tmp_path / "a"), config, arrays | {KERNEL: arrays[KERNEL] * np.nan})
    assert not list(tmp_path.iterdir())


# What forges rows on a terminal: an end of line, escape sequences, another direction of writing.
FORGED = "a\n\x1b[2Kok       b\t\r\u202e| c"
EXPECTED = r"a\n\x1b[2Kok       b\t\r\u202e| c"


@pytest.fixture
def forged(good, tmp_path):
    """A folder with a sound adapter, and one whose names are made for the terminal."""
    names = {
        "task": FORGED,
        "labels": [FORGED, "b"],
        "metric": {"name": FORGED, "value": 10**290, "split": FORGED},
        "versions": {FORGED: [FORGED]},
        "command": FORGED + "\ud800",
        # A size that is not written has its default.
        "adapter": {k: v for k, v in ADAPTER.__dict__.items() if k != "scale"},
    }
    _write(tmp_path / "a", good[0], good[1])
    _write(
        tmp_path / "b\n\x1b[2K", schema.seal(good[0] | names, good[0]["weights_sha256"]), good[1]
    )
    return tmp_path


def _printed(capsys):
    out = capsys.readouterr()
    for character in out.out + out.err:
        assert character.isprintable() or character == "\n", repr(character)
    return out.out


def test_names_make_no_rows(forged, capsys):
    folder = f"{forged}/b\n\x1b[2K"
    assert main(["list", str(forged)]) == 0
    rows = _printed(capsys).splitlines()
    assert [row.split()[0] for row in rows] == ["task", "mrpc", EXPECTED.split()[0], "2"]
    assert main(["verify", folder]) == 0
    assert len(_printed(capsys).splitlines()) == 1
    assert main(["show", folder]) == 0
    assert f"| Task | {EXPECTED.replace('|', chr(92) + '|')} |\n" in _printed(capsys)


def test_one_refused_folder_does_not_end_the_list(good, tmp_path, capsys):
    _write(tmp_path / "a\n", b'{"metric": ' + b"9" * 400 + b"}", good[1])
    wrong = {"metric": {"name": "f1", "value": 10**290, "split": ["\ud800"]}}
    _write(tmp_path / "b", schema.seal(good[0] | wrong, good[0]["weights_sha256"]), good[1])
    _write(tmp_path / "c", good[0], good[1])
    assert main(["list", str(tmp_path)]) == 1
    rows = _printed(capsys).splitlines()
    assert len(rows) == 5 and "3 adapters, 2 refused" in rows[-1]


def test_links_to_folders_are_not_followed(good, tmp_path, capsys):
    _write(tmp_path / "a", good[0], good[1])
    for name, target in {"up": "..", "here": ".", "root": "/", "current": "a"}.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "up").symlink_to("..")
    assert main(["list", str(tmp_path)]) == 0
    rows = _printed(capsys).splitlines()
    assert [os.path.basename(row) for row in rows[1:-1]] == ["a", "current"]


@pytest.mark.parametrize("command", ["list", "show", "verify"])
def test_schemes_that_are_not_supported(command, capsys):
    assert main([command, "s3://bucket/adapter"]) == 1
    captured = capsys.readouterr()
    assert "s3://" in captured.out + captured.err and "gs://" in captured.out + captured.err


def test_a_command_of_no_text_does_not_keep_an_adapter_from_being_saved(good, tmp_path):
    config, _, arrays = good
    save_adapter(str(tmp_path / "a"), config | {"command": "--data_dir=\udcff"}, arrays)
    assert "\\udcff" in (tmp_path / "a" / "README.md").read_text()
