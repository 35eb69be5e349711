"""What each method trains, counted by hand for BERT-base and checked after real steps."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.adapters.variable_specs import VariableSpec, base_specs
from adapter_bert_tf.base import load_base
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.heads.mixed.classifier import HeadOf, MixedClassifier
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from adapter_bert_tf.training.loop import TrainingSettings, compile_model, train
from adapter_bert_tf.training.parameter_report import count, format_per_task_report, format_report
from adapter_bert_tf.training.tuning import METHODS, Tuning, select_trained
from tests import support
from tests.refusals import raises_code

# Per layer of the tiny base: attention 4 (16*16 + 16), feed-forward 16*32 + 32 + 32*16 + 16.
LAYER, NORMS, POOLER, HEAD, SCORE = 4 * 272 + 1072, 5 * 32, 272, 34, 17
ADAPTERS = 4 * (2 * 16 * 4 + 4 + 16)
# Two embeddings of 4 numbers, a projector 4 -> 5 -> 6, generators of 2 * 16 * 4 + 4 + 3 * 16.
HYPER = 2 * 4 + 5 * 5 + 6 * 6 + 4 * 7 * 180
# Of two layers and two positions as well, a projector 12 -> 5 -> 6 and its LayerNorm.
SHARED_HYPER = 6 * 4 + 13 * 5 + 6 * 6 + 12 + 7 * 180
WIDTHS = {"task_embedding_size": 4, "projector_size": 5, "projected_size": 6, "start": "published"}
GENERATED = AdapterConfig(4, normalize_output=True)
PALS = 17 * 12 + 13 * 16 + 2 * 3 * 13 * 12
FUSION = 4 * (3 * 16**2 + 2 * 16)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "several_tasks.md"
EMBEDDINGS = (support.CONFIG["vocab_size"] + 24 + 2) * 16
BERT_BASE = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_layers": 12,
    "num_attention_heads": 12,
    "inner_dim": 3072,
    "type_vocab_size": 2,
    "max_sequence_length": 512,
}
TUNINGS = [
    (Tuning("adapters"), ADAPTERS + NORMS + HEAD),
    (Tuning("adapters", train_layer_norm=False), ADAPTERS + HEAD),
    (Tuning("adapters", train_pooler=True), ADAPTERS + NORMS + POOLER + HEAD),
    (Tuning("full"), EMBEDDINGS + 2 * LAYER + NORMS + POOLER + HEAD),
    (Tuning("top_k", top_k=1), LAYER + 2 * 32 + POOLER + HEAD),
    (Tuning("top_k", top_k=2), 2 * LAYER + 4 * 32 + POOLER + HEAD),
    (Tuning("layer_norm"), NORMS + HEAD),
    (Tuning("head"), HEAD),
    (Tuning("head", train_pooler=True), POOLER + HEAD),
    (Tuning("fusion"), FUSION + HEAD),
    (Tuning("fusion", train_pooler=True), FUSION + POOLER + HEAD),
    (Tuning("fusion", train_members=True), FUSION + 2 * ADAPTERS + HEAD),
    # Two tasks, one of two classes and one with a score.
    (Tuning("multitask_full"), EMBEDDINGS + 2 * LAYER + NORMS + POOLER + HEAD + SCORE),
    (Tuning("multitask_adapters"), ADAPTERS + NORMS + HEAD + SCORE),
    (Tuning("per_task_adapters"), 2 * ADAPTERS + NORMS + HEAD + SCORE),
    (Tuning("per_task_adapters", train_layer_norm=False), 2 * ADAPTERS + HEAD + SCORE),
    (Tuning("multitask_layer_norm"), NORMS + HEAD + SCORE),
    (Tuning("hyperformer"), HYPER + NORMS + HEAD + SCORE),
    (Tuning("hyperformer", train_layer_norm=False), HYPER + HEAD + SCORE),
    (Tuning("hyperformer++", train_pooler=True), SHARED_HYPER + NORMS + POOLER + HEAD + SCORE),
    (Tuning("pals"), EMBEDDINGS + 2 * LAYER + NORMS + POOLER + HEAD + SCORE + 2 * PALS),
]
PARTS = {
    "adapters": AdapterConfig(bottleneck_size=4),
    "multitask_adapters": AdapterConfig(bottleneck_size=4),
    "per_task_adapters": PerTaskConfig(AdapterConfig(bottleneck_size=4), ("a", "b")),
    "hyperformer": HyperFormerConfig(GENERATED, ("a", "b"), **WIDTHS),
    "hyperformer++": HyperFormerConfig(GENERATED, ("a", "b"), shared=True, **WIDTHS),
    "pals": PalsConfig(("a", "b"), 12, 3),
    # Members that add something from the start: else no attention over them has a gradient.
    "fusion": FusionConfig(AdapterConfig(4, init_scale=0.3, identity_init=False), ("a", "b")),
}


HEADS = (HeadOf("a", 2), HeadOf("b", 1, is_score=True))


def _model(folder, tuning):
    encoder = load_base(folder).build_encoder(PARTS.get(tuning.method))
    return MixedClassifier(encoder, HEADS) if tuning.of_several_tasks else Classifier(encoder, 2)


def _batches(steps, tuning):
    inputs, labels = support.batch(rows=4), np.array([0, 1, 1, 0])
    if tuning.of_several_tasks:
        inputs["task_ids"] = np.array([0, 1, 1, 0], "i4")
        labels = np.array([[0, 0], [2, 0.5], [2, -0.5], [1, 0]], "f4")
    return tf.data.Dataset.from_tensors((inputs, labels)).repeat(steps)


@pytest.mark.parametrize(("tuning", "expected"), TUNINGS, ids=str)
def test_counts(tuning, expected, tiny_base_folder):
    model = _model(tiny_base_folder, tuning)
    trained = select_trained(model, tuning)
    assert count(trained.values()) == expected
    assert {v.ref() for v in model.trainable_variables} == {v.ref() for v in trained.values()}


def trained_of(model):
    trained = {variable.ref() for variable in model.trainable_variables}
    return [name for name, v in model.named_variables().items() if v.ref() in trained]


@pytest.mark.parametrize("tuning", [tuning for tuning, _ in TUNINGS], ids=str)
def test_a_copy_trains_the_same(tuning, tiny_base_folder):
    model = _model(tiny_base_folder, tuning)
    assert trained_of(type(model).from_config(model.get_config())) == list(model.named_variables())
    trained = select_trained(model, tuning)
    copy = type(model).from_config(model.get_config())
    assert set(trained_of(copy)) == set(trained)


def test_what_keras_saves_and_loads_trains_the_same(tiny_base_folder, tmp_path, caplog):
    """Its own `load_model`, and on from there: the base stays as it was."""
    model = _model(tiny_base_folder, Tuning())
    trained = select_trained(model, Tuning())
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(1e-2), loss)
    model.fit(_batches(1, Tuning()), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = tf_keras.models.load_model(tmp_path / "model.keras")
    assert set(trained_of(loaded)) == set(trained)
    before = {name: v.numpy() for name, v in loaded.named_variables().items()}
    loaded.fit(_batches(2, Tuning()), verbose=0)
    moved = {n for n, v in loaded.named_variables().items() if np.any(v.numpy() != before[n])}
    assert moved and moved <= set(trained)
    assert "call select_trained after" not in caplog.text
    model.save(tmp_path / "saved_model")  # Of which tf_keras loads nothing as frozen.
    assert "call select_trained after loading" in caplog.text


@pytest.mark.parametrize("tuning", [tuning for tuning, _ in TUNINGS], ids=str)
def test_what_is_frozen_is_bit_identical_and_what_is_trained_moves(tuning, tiny_base_folder):
    tf_keras.utils.set_random_seed(0)
    model = _model(tiny_base_folder, tuning)
    trained = select_trained(model, tuning)
    before = {name: v.numpy() for name, v in model.named_variables().items()}
    settings = TrainingSettings(steps=4, batch_size=4, learning_rate=1e-2)
    if tuning == Tuning():
        train(model, trained, lambda start, share: _batches(4, tuning), settings)
    else:  # The same steps without the loop and its graph, which take their time.
        compile_model(model, settings)
        for batch in _batches(4, tuning):
            model.train_step(batch)
    after = {name: v.numpy() for name, v in model.named_variables().items()}
    moved = {name for name in after if after[name].tobytes() != before[name].tobytes()}
    assert moved <= set(trained)
    # A key bias has no effect under the softmax: its gradient is zero but for rounding.
    assert {n for n in trained if not n.endswith("key/bias")} <= moved


def test_bert_base_has_the_counts_that_adapter_bert_prints():
    encoder = new_encoder(BERT_BASE, PRESETS["houlsby"])
    model = Classifier(encoder, 2)
    trained = select_trained(model, Tuning())
    text = format_report(model, trained, Tuning())
    assert "***** Total Parameters = 111863042 *****" in text
    assert "***** Total Trainable Parameters = 2419202 *****" in text
    row = next(line for line in text.splitlines() if line.split()[0] == "adapters")
    assert row.split()[1] == "2,379,264"
    adapters = [v for name, v in trained.items() if name.startswith("adapters/")]
    assert count(adapters) == 2379264


# The 8 tasks of GLUE but WNLI: classes of each, 1 for STS-B's score.
GLUE = {"cola": 2, "sst-2": 2, "mrpc": 2, "sts-b": 1, "qqp": 2, "mnli": 3, "qnli": 2, "rte": 2}
BASE, OF_ADAPTERS, OF_NORMS, OF_HEADS = 109_482_240, 2_379_264, 25 * 2 * 768, 16 * 769
EIGHT = {
    "multitask_full": (BASE + OF_HEADS, BASE + OF_HEADS),
    "multitask_adapters": (BASE + OF_ADAPTERS + OF_HEADS, OF_ADAPTERS + OF_NORMS + OF_HEADS),
    "per_task_adapters": (
        BASE + 8 * OF_ADAPTERS + OF_HEADS,
        8 * OF_ADAPTERS + OF_NORMS + OF_HEADS,
    ),
    # Without heads 61,195,008 and 2,620,376: 6.99% and 0.30% of the base a task.
    "hyperformer": (BASE + 61_156_608 + OF_HEADS, 61_195_008 + OF_HEADS),
    "hyperformer++": (BASE + 2_581_976 + OF_HEADS, 2_620_376 + OF_HEADS),
    "pals": (BASE + 8 * 1_819_836 + OF_HEADS, BASE + 8 * 1_819_836 + OF_HEADS),
}
OF_EIGHT = {
    "multitask_adapters": PRESETS["houlsby"],
    "per_task_adapters": PerTaskConfig(PRESETS["houlsby"], tuple(GLUE)),
    "hyperformer": HyperFormerConfig(AdapterConfig(24, normalize_output=True), tuple(GLUE)),
    "hyperformer++": HyperFormerConfig(
        AdapterConfig(24, normalize_output=True), tuple(GLUE), shared=True
    ),
    "pals": PalsConfig(tuple(GLUE)),
}


@pytest.mark.parametrize("method", support.seldom(EIGHT, ("hyperformer++",)))
def test_the_counts_of_bert_base_with_eight_tasks(method):
    """They are derived in docs/several_tasks.md."""
    heads = [HeadOf(task, outputs, task == "sts-b") for task, outputs in GLUE.items()]
    model = MixedClassifier(new_encoder(BERT_BASE, OF_EIGHT.get(method)), heads)
    trained = select_trained(model, Tuning(method))
    total, moving = EIGHT[method]
    assert count(model.named_variables().values()) == total
    assert count(trained.values()) == moving
    line = format_per_task_report(model, trained, 8)
    assert f"{total / BASE:.4f} x the base" in line and f"{moving / 8 / BASE:.3%} of it" in line
    shown = (f"{total:,}", f"{total / BASE:.4f}", f"{moving:,}", f"{moving / 8 / BASE:.3%}")
    assert f"| `{method}` | {' | '.join(shown)} |" in PAGE.read_text().splitlines()


@pytest.mark.parametrize("tuning", [Tuning("full"), Tuning("top_k", top_k=1)], ids=str)
def test_the_pooler_is_not_trained_where_nothing_depends_on_it(tuning, tiny_base_folder):
    model = SpanLabeler(load_base(tiny_base_folder).build_encoder())
    trained = select_trained(model, tuning)
    assert "head/kernel" in trained and not any("/pooler/" in name for name in trained)


def test_top_k_must_exist(tiny_base_folder):
    tuning = Tuning("top_k", top_k=3)
    with raises_code("invalid", "top_k"):
        select_trained(_model(tiny_base_folder, tuning), tuning)


def test_adapters_must_exist(tiny_base_folder):
    with raises_code("invalid", "'adapters'"):
        select_trained(_model(tiny_base_folder, Tuning("full")), Tuning("adapters"))


WRONG_KINDS = {
    "a name in the place of a tuning": (
        lambda base: select_trained(Classifier(base.build_encoder(), 2), "adapters"),
        "invalid: 'adapters'",
    ),
    "a name in the place of a config": (
        lambda base: base.build_encoder("houlsby"),
        "invalid: 'houlsby'",
    ),
    "a list of methods": (lambda base: Tuning(["adapters"]), "invalid: 'adapters'"),
    "yes": (lambda base: Tuning(train_members="yes"), "invalid: train_members"),
    "a number": (lambda base: Tuning(train_layer_norm=5), "invalid: train_layer_norm"),
}


@pytest.mark.parametrize("case", WRONG_KINDS)
def test_values_of_another_kind(case, tiny_base_folder):
    call, message = WRONG_KINDS[case]
    with raises_code(message):
        call(load_base(tiny_base_folder))


def test_an_unknown_method_names_the_known_ones():
    with raises_code("invalid", "layer_norm"):
        Tuning("lora")


def test_every_method_has_a_row_here():
    assert set(METHODS) == {tuning.method for tuning, _ in TUNINGS}


@pytest.mark.parametrize(
    ("name", "group", "layer"),
    [
        ("bert/embeddings/word_embeddings", "embeddings", None),
        ("bert/embeddings/LayerNorm/gamma", "LayerNorm", None),
        ("bert/encoder/layer_3/output/LayerNorm/beta", "LayerNorm", 3),
        ("bert/encoder/layer_11/output/dense/kernel", "layers", 11),
        ("bert/pooler/dense/bias", "pooler", None),
        ("adapters/layer_0/attention/down_kernel", "adapters", 0),
    ],
)
def test_groups_and_layers(name, group, layer):
    spec = (base_specs(BERT_BASE) | PRESETS["houlsby"].specs(BERT_BASE))[name]
    assert (spec.group, spec.layer) == (group, layer)


def test_a_variable_of_an_unknown_group_is_an_error():
    with raises_code("invalid", "'mystery'"):
        VariableSpec((2,), "mystery")


@pytest.mark.parametrize("change", ["missing", "unknown", "another shape"])
def test_a_variable_that_nobody_describes_is_an_error(change, tiny_base_folder):
    model = _model(tiny_base_folder, Tuning())
    specs = model.specs()
    if change == "missing":
        del specs["head/bias"]
    elif change == "unknown":
        specs["gate"] = VariableSpec((2,), "layers")
    else:
        specs["head/bias"] = VariableSpec((3,), "head")
    model.specs = lambda: specs
    with raises_code("invalid", "gate" if change == "unknown" else "head/bias"):
        select_trained(model, Tuning())


@pytest.mark.parametrize(
    ("method", "rate"),
    [
        ("adapters", 1e-3),
        ("full", 5e-5),
        ("multitask_full", 5e-5),
        ("per_task_adapters", 1e-3),
        ("hyperformer", 3e-4),
        ("hyperformer++", 3e-4),
        ("pals", 2e-5),
    ],
)
def test_the_usual_rate(method, rate):
    assert Tuning(method).usual_rate == rate
