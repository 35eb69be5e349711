"""Models and arguments of the steps that benchmarks compile, with random weights."""

import dataclasses

TASK_NAMES = (*(f"task{i}" for i in range(7)), "last")
# Names of multitask methods in cases.
METHODS = {
    "full": "multitask_full",
    "shared": "multitask_adapters",
    "houlsby": "per_task_adapters",
}
VOCABULARY = 30522  # Of BERT, uncased.
BASES = {
    "tiny": {"hidden_size": 16, "num_layers": 2, "num_attention_heads": 2, "inner_dim": 32},
    "base": {"hidden_size": 768, "num_layers": 12, "num_attention_heads": 12, "inner_dim": 3072},
    "large": {"hidden_size": 1024, "num_layers": 24, "num_attention_heads": 16, "inner_dim": 4096},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """Parameters of a compiled step.

    Args:
      chip: a key of `tpu_hlo.CHIPS`; of no effect on the model.
      step: `train` or `predict`.
      base: a key of `BASES`.
      head: `classes`, `score`, `span`, `words`: masked words, or `several`: of all `TASK_NAMES`,
        the last with a score.
      outputs: of the head; of several tasks those of each that has classes.
      adapter: a preset's name, or `LOWER/UPPER`: presets of a stack; `adapter_size` is the size,
        of the upper one in a stack, 0 the preset's. Each of several tasks has its own. Of these
        also `shared`, one for all, `full`, none, `hyperformer`, `hyperformer++`, and `pals`, of
        which it is the size.
      optimizer: of `training.optimizer.OPTIMIZERS`.
      precision: `float32` or `bfloat16`.
      length: word pieces of an input.
      batch: examples a replica.
    """

    chip: str
    step: str
    base: str
    head: str
    outputs: int
    adapter: str
    adapter_size: int
    optimizer: str
    precision: str
    length: int
    batch: int


def new_model(case):
    """Makes the model of a case with random weights, compiled as by `run_classifier.py`."""
    from adapter_bert_tf.adapters.task_encoder import new_encoder
    from adapter_bert_tf.training.device.precision import precision_scope
    from adapter_bert_tf.training.loop import TrainingSettings, compile_model
    from adapter_bert_tf.training.tuning import Tuning, select_trained

    several = case.head == "several"
    with precision_scope(case.precision):
        sizes = {"vocab_size": VOCABULARY, **BASES[case.base]}
        model = with_head(case, new_encoder(sizes, adapter_of(case)))
    tuning = METHODS.get(case.adapter, case.adapter) if several else "adapters"
    # `adapt` leaves the LayerNorms frozen by default.
    select_trained(model, Tuning(tuning, train_layer_norm=case.head != "words"))
    compile_model(
        model,
        TrainingSettings(
            steps=1000, batch_size=case.batch, learning_rate=3e-4, optimizer=case.optimizer
        ),
    )
    return model


def adapter_of(case):
    """Returns the configuration of a case's adapters; None for full fine-tuning."""
    from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
    from adapter_bert_tf.adapters.languages.stack import StackConfig

    if "/" in case.adapter:
        below, above = (PRESETS[name] for name in case.adapter.split("/"))
        preset = StackConfig(below, above, "below")
    else:
        other = AdapterConfig(normalize_output=case.adapter.startswith("hyper"))
        preset = PRESETS.get(case.adapter, other)
    adapter = preset.adjusted(size=case.adapter_size) if case.adapter_size else preset
    several = case.head == "several"
    return of_tasks(case.adapter, adapter, TASK_NAMES) if several else adapter


def with_head(case, encoder):
    """Returns the model of a case: its head on an encoder."""
    from adapter_bert_tf.heads.classifier import Classifier
    from adapter_bert_tf.heads.masked_words.model import MaskedWordModel
    from adapter_bert_tf.heads.mixed.classifier import HeadOf, MixedClassifier
    from adapter_bert_tf.heads.span_labeler import SpanLabeler

    if case.head == "span":
        return SpanLabeler(encoder)
    if case.head == "words":
        return MaskedWordModel(encoder)
    if case.head == "several":
        *others, last = TASK_NAMES
        heads = [HeadOf(name, case.outputs) for name in others]
        return MixedClassifier(encoder, [*heads, HeadOf(last, 1, is_score=True)])
    return Classifier(encoder, case.outputs, regression=case.head == "score")


def of_tasks(name, adapter, tasks):
    """Returns the configuration of multitask modules, by the name in a case."""
    from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
    from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
    from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig

    tasks = tuple(tasks)
    if name in ("full", "shared"):
        return adapter if name == "shared" else None
    if name == "pals":
        return PalsConfig(tasks, adapter.bottleneck_size, 4)
    if name.startswith("hyperformer"):
        return HyperFormerConfig(adapter, tasks, shared=name == "hyperformer++")
    return PerTaskConfig(adapter, tasks)


def arguments(case):
    """Returns (inputs,) of a step, or (inputs, labels) of a training step, all zero."""
    import tensorflow as tf

    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: tf.zeros([case.batch, case.length], tf.int32) for name in names}
    if case.head == "several":
        inputs["task_ids"] = tf.zeros([case.batch], tf.int32)
    if case.head == "words":
        return words_arguments(case, inputs)
    if case.step == "predict":
        return (inputs,)
    if case.head == "several":
        return inputs, tf.zeros([case.batch, 2])
    shape = [case.batch, case.outputs] if case.head == "span" else [case.batch]
    return inputs, tf.zeros(shape, tf.float32 if case.head == "score" else tf.int32)


def words_arguments(case, inputs):
    """Returns the arguments of a step of masked words, with the places of a share of 0.15."""
    import tensorflow as tf

    places = [case.batch, int(0.15 * case.length + 0.5)]
    inputs["masked_positions"] = tf.zeros(places, tf.int32)
    if case.step == "train":
        return inputs, tf.zeros([*places, 2])
    return (
        inputs | {"masked_ids": tf.zeros(places, tf.int32), "masked_weights": tf.zeros(places)},
    )
