"""The adapter directory: round trip into another model, and what is refused."""

import os
import pathlib
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base, open_base
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.output.atomic import replace_folder
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store import checks, directory, load_adapter, save_adapter, schema
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.files import write_files
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.refusals import raises_code

ADAPTER = AdapterConfig(bottleneck_size=4, init_scale=0.3)


def _model(folder, adapter=ADAPTER, labels=2):
    return Classifier(load_base(folder).build_encoder(adapter), labels)


def _save(base_folder, folder, method="adapters"):
    model = _model(base_folder, ADAPTER if method == "adapters" else None)
    trained = select_trained(model, Tuning(method))
    for variable in trained.values():
        variable.assign_add(np.random.default_rng(1).normal(size=variable.shape) * 0.1)
    adapter = ADAPTER if method == "adapters" else None
    config = support.adapter_config(load_base(base_folder), adapter, method)
    save_adapter(str(folder), config, trained)
    return model


RUN = "out/lr=0.1,size=4,seed=0"
LISTS = {  # What is written: the pairs of name and path.
    "plain": ("a,b", [("", "a"), ("", "b")]),
    "names": ("x=a, y = b", [("x", "a"), ("y", "b")]),
    "a run of a sweep": (f"{RUN},a", [("", RUN), ("", "a")]),
    "its adapter": (f"a,{RUN}/adapter", [("", "a"), ("", f"{RUN}/adapter")]),
    "a name for it": (f"r={RUN}/adapter,s={RUN}", [("r", f"{RUN}/adapter"), ("s", RUN)]),
    "from within": ("lr=0.1,size=4,seed=0,a", [("", "lr=0.1,size=4,seed=0"), ("", "a")]),
    "a name with a slash": ("x/1=a,b", [("x/1", "a"), ("", "b")]),
    "not there": ("out/lr=1,seed=0", [("", "out/lr=1"), ("seed", "0")]),
    "nothing": ("", []),
    "gaps": (",a,,", [("", "a")]),
    "a bucket": ("x=gs://b/a=1,gs://b/c", [("x", "gs://b/a=1"), ("", "gs://b/c")]),
}


@pytest.mark.parametrize("case", LISTS)
def test_a_comma_may_be_in_the_name_of_a_folder(case, tmp_path, monkeypatch):
    for place in ("a", "b", f"{RUN}/adapter", f"{RUN[4:]}/adapter"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "adapter_config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    text, pairs = LISTS[case]
    monkeypatch.setattr(directory.storage, "exists", os.path.exists)  # No bucket is looked into.
    assert directory.parse_named_folders(text) == pairs


@pytest.mark.parametrize("method", ["adapters", "full", "layer_norm"])
def test_round_trip(method, tiny_base_folder, tmp_path):
    model = _save(tiny_base_folder, tmp_path / "a", method)
    saved = load_adapter(str(tmp_path / "a"))
    twin = _model(tiny_base_folder, ADAPTER if method == "adapters" else None)
    saved.assign_to(twin.named_variables(), load_base(tiny_base_folder).fingerprint())
    inputs = support.batch()
    np.testing.assert_array_equal(model(inputs), twin(inputs))


def test_files_and_card(tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "README.md",
        "adapter.safetensors",
        "adapter_config.json",
    ]
    text = (tmp_path / "a" / "README.md").read_text()
    assert "other tasks cannot share" not in text  # As the card of `--tuning=full` says.
    assert "f1 = 0.5000 (dev)" in text and "size 4" in text
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    _save(tiny_base_folder, tmp_path / "full", "full")
    assert "other tasks cannot share" in (tmp_path / "full" / "README.md").read_text()


def test_saving_again_replaces_an_adapter_and_nothing_else(tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a", "head")
    _save(tiny_base_folder, tmp_path / "a")
    assert load_adapter(str(tmp_path / "a")).config["method"] == "adapters"
    (tmp_path / "a" / "thesis.txt").touch()
    with raises_code("occupied", "'thesis.txt'"):
        _save(tiny_base_folder, tmp_path / "a")
    assert (tmp_path / "a" / "thesis.txt").exists()


def test_what_lies_beside_is_not_touched(tiny_base_folder, tmp_path):
    (tmp_path / "a.tmp").mkdir()
    (tmp_path / "a.tmp" / "thesis.txt").touch()
    _save(tiny_base_folder, tmp_path / "a")
    assert (tmp_path / "a.tmp" / "thesis.txt").exists()


def test_a_failure_leaves_what_was_there(tmp_path):
    write_files(str(tmp_path / "a"), {"old": b"1"})
    with pytest.raises(TypeError):
        write_files(str(tmp_path / "a"), {"new": b"2", "broken": None})
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["a", "a/old"]


def test_a_failure_at_the_very_end_puts_the_old_one_back(tmp_path):
    write_files(str(tmp_path / "a"), {"old": b"1"})
    with pytest.raises(FileNotFoundError), replace_folder(str(tmp_path / "a"), "old"):
        pass  # Nothing was written that could take the place.
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["a", "a/old"]


def _require_saved_model(path):
    SavedModelDir(path).require_replaceable()


@pytest.mark.parametrize("check", [require_free, _require_saved_model])
def test_what_comes_to_be_there_meanwhile_stays(check, tmp_path):
    folder = tmp_path / "a"
    with (
        raises_code("occupied"),
        replace_folder(str(folder), "new", check) as place,
    ):
        pathlib.Path(place).mkdir()
        pathlib.Path(place, "new").touch()
        folder.mkdir()
        (folder / "mine").write_text("mine")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a", "mine"]


def test_several_writers_of_one_folder(tmp_path):
    with futures.ThreadPoolExecutor(4) as pool:
        for done in [
            pool.submit(write_files, str(tmp_path / "a"), {"one": b"%d" % i, "two": b""})
            for i in range(60)
        ]:
            done.result()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "one", "two"]


def test_random_weights_are_gone_with_their_process(tiny_base_folder, tmp_path):
    base = open_base(
        config_path=f"{tiny_base_folder}/bert_config.json",
        vocabulary_path=f"{tiny_base_folder}/vocab.txt",
    )
    model = Classifier(base.build_encoder(ADAPTER), 2)
    save_adapter(
        str(tmp_path / "a"),
        support.adapter_config(base, ADAPTER),
        select_trained(model, Tuning("adapters")),
    )
    with raises_code("unsupported", "random weights"):
        load_adapter(str(tmp_path / "a")).assign_to(model.named_variables(), base.fingerprint())


def test_another_base_is_refused(tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    support.write_google(tmp_path / "other", support.random_weights(seed=5))
    other = load_base(str(tmp_path / "other"))
    model = _model(str(tmp_path / "other"))
    with raises_code("mismatch", "weights_sha256"):
        load_adapter(str(tmp_path / "a")).assign_to(model.named_variables(), other.fingerprint())


TUNINGS = {  # Whether it brings all LayerNorms of its own.
    Tuning(): True,
    Tuning(train_layer_norm=False): False,
    Tuning("layer_norm"): True,
    Tuning("head"): False,
    Tuning("top_k", top_k=1): False,
    Tuning("full"): True,
}


@pytest.fixture(scope="module")
def other_norms(tmp_path_factory):
    """A base that differs from the tiny one in its LayerNorms alone."""
    folder = tmp_path_factory.mktemp("norms") / "base"
    weights = support.random_weights()
    names = [name for name in weights if name.endswith("LayerNorm/gamma")]
    support.write_google(folder, weights | {name: weights[name] * 1.5 for name in names})
    return load_base(str(folder))


@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda t: f"{t.method} {t.train_layer_norm}")
def test_other_layer_norms_are_another_base_where_they_count(
    tuning, other_norms, tiny_base_folder, caplog
):
    base = load_base(tiny_base_folder)
    adapter = ADAPTER if tuning.needs_adapter else None
    config = schema.describe("t", ["0", "1"], base.fingerprint(), tuning, adapter)
    check_base(config, base.fingerprint())
    if TUNINGS[tuning]:
        check_base(config, other_norms.fingerprint())
    else:
        with raises_code("mismatch", "LayerNorms"):
            check_base(config, other_norms.fingerprint())
    assert not caplog.text
    older = config | {"base": {k: v for k, v in config["base"].items() if k != checks.NORMS}}
    check_base(older, other_norms.fingerprint())
    assert ("cannot be compared" in caplog.text) != TUNINGS[tuning]


@pytest.mark.parametrize(
    "change", [{"adapter": AdapterConfig(bottleneck_size=8)}, {"labels": 3}, {"adapter": None}]
)
def test_another_model_is_refused(change, tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "a")
    model = _model(tiny_base_folder, **change)
    before = model.head.kernel.numpy()
    with raises_code("mismatch"):
        load_adapter(str(tmp_path / "a")).assign_to(
            model.named_variables(), load_base(tiny_base_folder).fingerprint()
        )
    np.testing.assert_array_equal(model.head.kernel, before)


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 2**-11), ("bfloat16", 2**-8)])
def test_sixteen_bits_halve_the_file(dtype, rounding, tiny_base_folder, tmp_path):
    _save(tiny_base_folder, tmp_path / "full")
    saved = load_adapter(str(tmp_path / "full"))
    save_adapter(str(tmp_path / "half"), saved.config, saved.weights, dtype=dtype)
    full, half = (load_adapter(str(tmp_path / name)).weights for name in ("full", "half"))
    for name, value in full.items():
        assert half[name].dtype == np.float32
        np.testing.assert_allclose(half[name], value, rtol=rounding, atol=1e-7)
    sizes = [(tmp_path / name / "adapter.safetensors").stat().st_size for name in ("full", "half")]
    assert sizes[0] - sizes[1] == pytest.approx(2 * sum(v.size for v in full.values()), abs=64)


@pytest.mark.parametrize("config", [{}, {"adapter": None}, None])
def test_a_config_that_is_none_is_said(config, tmp_path):
    with raises_code("invalid", "AdapterModel.config"):
        save_adapter(tmp_path / "a", config, {})
    assert not list(tmp_path.iterdir())


def test_what_sixteen_bits_cannot_hold_is_named(tiny_base_folder, tmp_path):
    model = _model(tiny_base_folder)
    trained = select_trained(model, Tuning("adapters"))
    model.head.kernel.assign_add(tf.fill([16, 2], 1e5))
    config = support.adapter_config(load_base(tiny_base_folder), ADAPTER)
    with raises_code("invalid", "'head/kernel'"):
        save_adapter(str(tmp_path / "a"), config, trained, dtype="float16")
    assert not list(tmp_path.iterdir())
