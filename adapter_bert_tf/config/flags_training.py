"""Flags of every command: the method, the training, and the devices."""

from adapter_bert_tf.config import flags_optimizer, flags_several
from adapter_bert_tf.config.flags_several import HYPER, SEVERAL
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Row

_WITH_ADAPTERS = ("tuning", ("adapters", "multitask_adapters", "per_task_adapters"))
_WITH_SIZES = ("tuning", (*_WITH_ADAPTERS[1], *HYPER))
_ALONE = ("layer_norm", "multitask_layer_norm", "head", "fusion")
_WITH_FUSION = ("tuning", ("fusion",))

METHOD = (
    Row(
        "tuning",
        "choice",
        "adapters",
        f"What is trained. Several tasks together: {', '.join(SEVERAL)}.",
        Role.METHOD,
        choices=("adapters", "full", "top_k", "layer_norm", "head", "fusion", *SEVERAL),
    ),
    Row(
        "adapter",
        "string",
        "houlsby",
        "Preset (houlsby, adapter_bert, pfeiffer, parallel, "
        "scaled_parallel) or a JSON file of an AdapterConfig.",
        Role.METHOD,
        only_with=_WITH_ADAPTERS,
    ),
    Row(
        "adapter_size",
        "integer",
        None,
        "Bottleneck size. Default: the preset's, 64; of a HyperFormer a 32nd of the hidden size.",
        Role.METHOD,
        lowest=1,
        only_with=_WITH_SIZES,
    ),
    Row(
        "adapter_layers",
        "string",
        None,
        "Layers with adapters, such as 6-11. Default: all.",
        Role.METHOD,
        only_with=_WITH_SIZES,
    ),
    Row(
        "adapter_init_scale",
        "real",
        None,
        "Standard deviation of the adapters' kernels at the start. "
        "Default: the preset's; adapter-bert's is 1e-3.",
        Role.METHOD,
        lowest=0.0,
        only_with=_WITH_ADAPTERS,
    ),
    Row(
        "top_k",
        "integer",
        2,
        "Number of upper layers for --tuning=top_k.",
        Role.METHOD,
        lowest=1,
        only_with=("tuning", ("top_k",)),
    ),
    Row(
        "frozen_layers",
        "integer",
        0,
        "Leave the embeddings and this many lowest layers as the base has them: no adapters, "
        "LayerNorms frozen, no dropout. They are computed without gradients, once a step, or with "
        "--cache_frozen once.",
        Role.METHOD,
        lowest=0,
    ),
    Row(
        "train_layer_norm",
        "boolean",
        True,
        "Whether the methods with adapters train all LayerNorms.",
        Role.METHOD,
        only_with=_WITH_SIZES,
    ),
    Row(
        "train_pooler",
        "boolean",
        None,
        "Whether the pooler is trained where the base's layers are not. Default: only if the "
        "base's makers never did, so that its bias is all zeros.",
        Role.METHOD,
        only_with=("tuning", (*_WITH_SIZES[1], *_ALONE)),
        earlier=False,
    ),
    Row(
        "train_members",
        "boolean",
        False,
        "Whether --tuning=fusion trains its members too.",
        Role.METHOD,
        only_with=_WITH_FUSION,
    ),
    Row(
        "fusion_cooling_steps",
        "integer",
        0,
        "Steps in which the temperature of the attention over members falls from 50 to 1; "
        "AdapterHub's is 1000. Default: it is 1 from the start.",
        Role.METHOD,
        lowest=0,
        only_with=_WITH_FUSION,
    ),
    Row(
        "adapter_drop",
        "integer",
        0,
        "Leave out the adapters of this many lowest layers, in training and "
        "of a saved adapter (AdapterDrop).",
        Role.LEFT_OUT,
        lowest=0,
        only_with=_WITH_SIZES,
    ),
    Row(
        "adapter_dtype",
        "choice",
        "float32",
        "Type of the weights in the adapter's file.",
        Role.LEFT_OUT,
        choices=("float32", "float16", "bfloat16"),
    ),
)

TRAINING = (
    Row(
        "init_from",
        "string",
        None,
        "Start training from the adapter in this directory, with its method: adapters, "
        "LayerNorms, pooler, and the head too if the labels are the same. It is only read.",
        Role.START,
        path="read",
    ),
    flags_several.INIT_TASK,
    Row(
        "fuse",
        "string",
        None,
        "Adapter directories that --tuning=fusion listens to, with commas between; NAME=DIR gives "
        "one another name. They are only read, and copied into the fusion's own.",
        Role.START,
        path="read",
        several=True,
        only_with=_WITH_FUSION,
    ),
    Row("train_batch_size", "integer", 32, "Examples a training step.", Role.TRAINING, lowest=1),
    Row(
        "gradient_accumulation_steps",
        "integer",
        1,
        "So many batches of --train_batch_size, computed one after the other, make one step: a "
        "batch so many times as large, in the memory of one.",
        Role.TRAINING,
        lowest=1,
    ),
    Row(
        "learning_rate",
        "real",
        None,
        "Peak learning rate. Default: 5e-5 where the base's layers are trained (pals: 2e-5), else "
        "1e-3 (hyperformer and hyperformer++: 3e-4).",
        Role.TRAINING,
    ),
    Row(
        "num_train_epochs",
        "real",
        3.0,
        "Passes over the training data.",
        Role.TRAINING,
        lowest=0.0,
    ),
    Row(
        "warmup_proportion",
        "real",
        0.1,
        "Share of the steps with rising learning rate.",
        Role.TRAINING,
        lowest=0.0,
        highest=1.0,
    ),
    *flags_optimizer.ROWS,
    Row(
        "eval_every_steps",
        "integer",
        None,
        "Steps between evaluations on the dev set during training. Default: none.",
        Role.TRAINING,
        lowest=1,
    ),
    Row(
        "metric",
        "string",
        None,
        "What weights and runs are chosen by, and named on the adapter's card: accuracy, f1, "
        "macro_f1, mcc; of scores pearson, spearman; of questions exact_match, f1. Default: the "
        "first that the task reports.",
        Role.METRIC,
    ),
    Row(
        "keep",
        "choice",
        "last",
        "Which weights are kept: the last, or the best on dev by --metric.",
        Role.TRAINING,
        choices=("last", "best"),
        only_with=("eval_every_steps", ()),
    ),
    Row(
        "patience",
        "integer",
        None,
        "Stop when so many evaluations in a row have not been better.",
        Role.TRAINING,
        lowest=1,
    ),
    Row(
        "group_by_length",
        "choice",
        "epoch",
        "Which training examples may come together in batches of similar lengths: of a quarter of "
        "one epoch, of 64 batches of the run (as earlier versions: of a small set several copies), "
        "or no particular ones. With --pad_to=0 none.",
        Role.TRAINING,
        choices=("epoch", "run", "no"),
        earlier="run",
    ),
    Row(
        "seed",
        "integer",
        0,
        "Of initialization, data order and dropout.",
        Role.SEED,
        lowest=0,
        highest=2**32 - 1,
    ),
)

DEVICES = (
    Row(
        "distribution",
        "choice",
        "auto",
        "Devices.",
        Role.DEVICES,
        choices=("auto", "one_device", "mirrored", "multi_worker", "tpu"),
    ),
    Row("use_tpu", "boolean", False, "Same as --distribution=tpu.", Role.DEVICES),
    Row(
        "precision",
        "choice",
        "float32",
        "Compute precision; bfloat16_base: only of the products with the base's kernels.",
        Role.DEVICES,
        choices=("float32", "bfloat16", "bfloat16_base"),
    ),
    Row("jit_compile", "boolean", False, "Compile with XLA.", Role.DEVICES),
    Row(
        "pad_to",
        "integer",
        None,
        "Batches are as long as their longest input, in steps of this; 0: "
        "always --max_seq_length. Default: 2 on CPU, 8 on GPU, 32 with --jit_compile, 0 on TPU.",
        Role.DEVICES,
        lowest=0,
    ),
    Row("tpu_name", "string", None, "Name or grpc:// address of the TPU.", Role.ADDRESS),
    Row("tpu_zone", "string", None, "Zone of the TPU.", Role.ADDRESS),
    Row("gcp_project", "string", None, "Cloud project of the TPU.", Role.ADDRESS),
    Row("eval_batch_size", "integer", 8, "Examples an evaluation step.", Role.PACE, lowest=1),
    Row("predict_batch_size", "integer", 8, "Examples a prediction step.", Role.PACE, lowest=1),
    Row(
        "save_checkpoints_steps", "integer", 1000, "Steps between checkpoints.", Role.PACE, lowest=1
    ),
    Row(
        "iterations_per_loop",
        "integer",
        None,
        "Steps in one call, at most --save_checkpoints_steps. Default: 100 on TPU, else 1.",
        Role.PACE,
        lowest=1,
    ),
    Row("master", "string", None, "Not used; kept for old command lines.", Role.UNUSED),
    Row("num_tpu_cores", "integer", 8, "Not used: the TPU says how many it has.", Role.UNUSED),
)

ROWS = (*METHOD, *flags_several.ROWS, *TRAINING, *DEVICES)
