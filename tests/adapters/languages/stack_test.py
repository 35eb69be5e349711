"""An adapter on top of another: AdapterHub's figures, files, other languages, refusals."""

import subprocess
import sys

import numpy as np
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.modules import AdapterModule
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter.mixed import group_key
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.adapters.languages import madx
from tests.refusals import raises_code

FROZEN_NORMS = Tuning(train_layer_norm=False)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return load_base(madx.write_base(tmp_path_factory.mktemp("madx") / "base"))


@pytest.fixture(scope="module")
def folders(base, tmp_path_factory):
    """Folders of the languages' adapters, and of the task's on top of `lang`."""
    folder = tmp_path_factory.mktemp("adapters")
    model = AdapterModel(base)
    for name, config in madx.LANGUAGES.items():
        task = model.add_adapter(name, ("0", "1"), config, tuning=FROZEN_NORMS)
        assign(task, madx.values_of(name))
        model.save_adapter(name, folder / name)
    labels, language = ("a", "b", "c"), folder / "lang"
    task = model.add_adapter("task", labels, madx.TASK, tuning=FROZEN_NORMS, stack=language)
    assign(task, madx.values_of("task"))
    model.save_adapter("task", folder / "task")
    return folder


def assign(model, values):
    named = model.named_variables()
    assert values.keys() <= named.keys()
    for name, value in values.items():
        named[name].assign(value)


def modules():
    """The module of each setup of the figures that can be written down here."""
    task = madx.TASK.module(madx.values_of("task"))
    found = {"none": AdapterModule(), "task": task}
    for name, config in madx.LANGUAGES.items():
        stack = StackConfig(config, madx.TASK, name)
        values = stack.borrowed_values([madx.values_of(name)]) | madx.values_of("task")
        found[f"stack({name},task)"] = stack.module(values)
    return found | {"lang": madx.LANGUAGES["lang"].module(madx.values_of("lang"))}


@pytest.mark.parametrize("setup", modules())
def test_the_figures_of_adapterhub(setup, base):
    encoder, golden = base.build_encoder(), madx.OUTPUTS[setup]
    module = modules()[setup]
    output = encoder(madx.INPUTS, module=module)["sequence_output"]
    np.testing.assert_allclose(output, golden["layer_1_output"], atol=2e-5)
    if "layer_0_input" in golden:
        embedded = encoder.embed(madx.INPUTS, module)
        np.testing.assert_allclose(embedded, golden["layer_0_input"], atol=1e-5)


def sequence_output(model, name):
    return model.model(name).encoder(madx.INPUTS)["sequence_output"]


def test_another_language_takes_the_place_of_the_first(base, folders):
    model = AdapterModel(base)
    for name in madx.LANGUAGES:
        model.load_adapter(folders / "task", name, stack=folders / name)
        expected = madx.OUTPUTS[f"stack({name},task)"]["layer_1_output"]
        np.testing.assert_allclose(sequence_output(model, name), expected, atol=2e-5)
        assert model.config(name)["adapter"]["name"] == name


def test_rows_of_one_batch_are_in_different_languages(base, folders):
    model = AdapterModel(base)
    for name in ("lang", "other"):
        model.load_adapter(folders / "task", name, stack=folders / name)
    rows = [{n: value[i : i + 1] for n, value in madx.INPUTS.items()} for i in (0, 1)]
    alone = [model(row, name)[0] for row, name in zip(rows, ("other", "lang"), strict=True)]
    np.testing.assert_allclose(model(madx.INPUTS, ["other", "lang"]), alone, atol=1e-5)
    # In one pass: another name of the lower adapter is no other computation.
    assert len({group_key(model.config(name), name) for name in ("lang", "other")}) == 1
    predictor = abt.Predictor(
        dict.fromkeys(("lang", "other"), folders / "task"),
        base=base,
        stack={name: folders / name for name in ("lang", "other")},
    )
    answers = predictor(["w1 w2", "w1 w2"], adapter=["lang", "other"])
    assert answers[0] != answers[1]


def test_a_directory_names_the_lower_adapter_and_holds_no_copy(folders):
    saved = load_adapter(folders / "task")
    assert saved.config["members"] == [load_adapter(folders / "lang").config["sha256"]]
    assert not [name for name in saved.weights if name.startswith("below/")]
    assert sorted(path.name for path in (folders / "task").iterdir()) == [
        "README.md",
        "adapter.safetensors",
        "adapter_config.json",
    ]
    assert "on lang" in (folders / "task" / "README.md").read_text()


def test_training_changes_the_upper_adapter_alone(base, folders):
    model = AdapterModel(base)
    trained = model.add_adapter("new", ("0", "1"), "pfeiffer", stack=folders / "lang")
    before = {name: v.numpy() for name, v in trained.named_variables().items()}
    trained.compile("sgd", trained.training_loss())
    labels = np.array([0, 1], np.int32)
    trained.fit(madx.INPUTS, labels, verbose=0, batch_size=2)
    after = {name: v.numpy() for name, v in trained.named_variables().items()}
    changed = {n.partition("/")[0] for n in before if not np.array_equal(before[n], after[n])}
    frozen = {n for n in before if n.startswith("below/") and np.array_equal(before[n], after[n])}
    assert changed <= {"adapters", "bert", "head"} and "adapters" in changed
    assert len(frozen) == len(madx.values_of("lang"))


def test_a_new_stack_computes_what_the_lower_adapter_does(base, folders):
    model = AdapterModel(base)
    model.add_adapter("new", ("0", "1"), "pfeiffer", tuning=FROZEN_NORMS, stack=folders / "lang")
    expected = madx.OUTPUTS["lang"]["layer_1_output"]
    np.testing.assert_allclose(sequence_output(model, "new"), expected, atol=2e-5)


def test_only_the_adapters_of_the_lower_one_are_used(base, folders, tmp_path):
    """Not its pooler, which is saved where the base has no trained one, nor its head."""
    model = AdapterModel(base)
    tuning = Tuning(train_layer_norm=False, train_pooler=True)
    lower = model.add_adapter("lang", ("0", "1"), madx.LANGUAGES["lang"], tuning=tuning)
    assign(lower, madx.values_of("lang"))
    model.save_adapter("lang", tmp_path / "lang")
    assert any("pooler" in name for name in load_adapter(tmp_path / "lang").weights)
    model.add_adapter("new", ("0", "1"), "pfeiffer", tuning=tuning, stack=tmp_path / "lang")
    expected = madx.OUTPUTS["lang"]["layer_1_output"]
    np.testing.assert_allclose(sequence_output(model, "new"), expected, atol=2e-5)
    for name, folder in (("with", tmp_path), ("without", folders)):
        model.load_adapter(folders / "task", name, stack=folder / "lang")
    logits = model(madx.INPUTS, ["with", "without"]).numpy()
    np.testing.assert_allclose(logits, model(madx.INPUTS, "without"), atol=1e-6)


def test_a_config_read_back_is_equal():
    config = StackConfig(PRESETS["pfeiffer+inv"], PRESETS["lora"], "en")
    assert ModuleConfig.from_json(config.to_json()) == config


def test_a_saved_model_answers_as_the_predictor(base, folders, tmp_path):
    predictor = abt.Predictor(folders / "task", base=base, stack=folders / "other")
    model, config = predictor.model.model("task"), predictor.model.config("task")
    from adapter_bert_tf.serving.export import export_task

    export_task(str(tmp_path / "saved"), model, config, base.vocabulary)
    code = (
        "import sys, tensorflow as tf, tensorflow_text\n"
        "served = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
        "print(*served(text_a=tf.constant(['w1 w2']))['probabilities'].numpy()[0])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "saved")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answer = predictor("w1 w2")["probabilities"].values()
    np.testing.assert_allclose([float(p) for p in printed.split()], list(answer), atol=1e-5)


def test_refusals(base, folders, tmp_path):
    model = AdapterModel(base)
    with raises_code("missing", "lang", "stack=FOLDER"):
        model.load_adapter(folders / "task")
    with raises_code("mismatch", "stack"):
        model.load_adapter(folders / "lang", stack=folders / "other")
    with raises_code("not_found"):
        model.add_adapter("a", ("0", "1"), "pfeiffer", stack=tmp_path / "nothing")
    with raises_code("invalid", "embeddings"):
        model.add_adapter("a", ("0", "1"), "pfeiffer+inv", stack=folders / "lang")
    with raises_code("conflict"):
        model.add_adapter("a", ("0", "1"), "pfeiffer", stack=folders / "task")
    model.add_adapter("norms", ("0", "1"), madx.TASK)
    model.save_adapter("norms", tmp_path / "norms")
    with raises_code("mismatch", "train_layer_norm=False"):
        model.add_adapter("a", ("0", "1"), "pfeiffer", stack=tmp_path / "norms")
    assert model.list_adapters() == ["norms"]
