"""What a command does, where it writes, which runs it consists of, and on which devices."""

import dataclasses
import os
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import Command, setting

# All but plain text, which only trains and is evaluated.
_ANSWERING = tuple(command for command in Command if command is not Command.ADAPT)


@dataclasses.dataclass(frozen=True)
class ActionsConfig:
    """What a command does."""

    do_train: bool = setting(False, "Train.", Role.TRAIN, defaults={Command.ADAPT: True})
    do_eval: bool = setting(
        False, "Evaluate on the dev set.", Role.APPLY, defaults={Command.ADAPT: True}
    )
    do_predict: bool = setting(False, "Predict the test set.", Role.APPLY, commands=_ANSWERING)
    do_export: bool = setting(
        False, "Write a SavedModel that takes raw texts.", Role.EXPORT, commands=_ANSWERING
    )
    merge: bool = setting(
        False,
        "Merge LoRA or (IA)^3 into the base's weights in the SavedModel, which is then as fast as "
        "the base alone.",
        Role.EXPORT,
        commands=_ANSWERING,
        only_with=("do_export", (True,)),
    )
    dry_run: bool = setting(
        False, "Check everything, report what would be trained, and stop.", Role.ONLY_CHECKED
    )
    overwrite: bool = setting(False, "Allow an --output_dir that holds another run.", Role.COMMAND)
    config: str | None = setting(
        None,
        "YAML file of settings, or the run.json of a run to repeat; flags on the command line win.",
        Role.COMMAND,
    )


@dataclasses.dataclass(frozen=True)
class OutputConfig:
    """Where a command writes."""

    output_dir: str | None = setting(
        None, "Folder for everything that the run writes.", Role.PLACE, path="written"
    )
    export_dir: str | None = setting(
        None,
        "Folder of the SavedModel. Default: OUTPUT_DIR/saved_model.",
        Role.PLACE,
        commands=_ANSWERING,
        path="written",
        only_with=("do_export", (True,)),
    )
    adapter_dir: str | None = setting(
        None,
        "Folder of the adapter: written in training, otherwise read. To read, name it or its run. "
        "Default: OUTPUT_DIR/adapter. "
        "In a folder given here, the adapter of another run is never replaced.",
        Role.ADAPTER,
        path="either",
    )
    report: bool = setting(True, "Write OUTPUT_DIR/report.html at the end of the run.", Role.REPORT)

    @property
    def folder(self) -> str:
        """`output_dir` as a path; empty if it is missing, which `checks` refuses."""
        return self.output_dir or ""

    @property
    def adapter_folder(self) -> str:
        """Folder of the adapter, which is read when the run does not train."""
        return self.adapter_dir or os.path.join(self.folder, "adapter")

    @property
    def export_folder(self) -> str:
        """Folder of the SavedModel."""
        return self.export_dir or os.path.join(self.folder, "saved_model")


@dataclasses.dataclass(frozen=True)
class SweepsConfig:
    """Several runs of one command: which they are, and where they are executed."""

    num_trials: int = setting(
        1,
        "Number of runs, with the seeds --seed, --seed + 1, ...; reports median and range.",
        Role.SWEEP,
        lowest=1,
    )
    sweep: str | None = setting(
        None,
        "Grid of runs, of which the best on dev is kept: `paper` (learning rate 3e-5, 3e-4, 3e-3 x "
        "epochs 3, 20), or a YAML file of `setting: [values]`; with --search also of `setting: "
        "{low: 1e-5, high: 1e-2, log: true}`. In Python also a dict.",
        Role.SWEEP,
    )
    search: Literal["grid", "random", "tpe"] = setting(
        "grid",
        "Which settings of --sweep are tried. grid: all combinations; random: --num_samples drawn "
        "from the values and ranges; tpe: each chosen by the results so far (Optuna's "
        "tree-structured Parzen estimator). --seed is the seed of the draws.",
        Role.SWEEP,
        only_with=("sweep", ()),
    )
    num_samples: int = setting(
        20,
        "Number of settings that --search tries.",
        Role.SWEEP,
        lowest=1,
        only_with=("search", ("random", "tpe")),
    )
    asha: bool = setting(
        False,
        "Evaluate the runs of --sweep after 1/9 and 1/3 of their steps, and stop those that are "
        "not among the best third of the runs there so far (ASHA).",
        Role.SWEEP,
        only_with=("sweep", ()),
    )
    sweep_minutes: float | None = setting(
        None,
        "Budget of --num_trials, --folds and --sweep: no run starts after this many minutes. Those "
        "in progress finish, and the best so far is kept. The same command continues.",
        Role.COMMAND,
        lowest=0.0,
    )
    workers: str | None = setting(
        None,
        "Where the runs of --num_trials, --folds and --sweep are executed. local:N or N: in N "
        "processes on this machine, as with --parallel_trials=N; ray://HOST:PORT, HOST:PORT or "
        "auto: on this Ray cluster; ray: on the cluster that Ray finds, otherwise on this machine. "
        "Default: one after the other.",
        Role.COMMAND,
    )
    parallel_trials: int = setting(
        1,
        "Runs of --num_trials, --folds and --sweep at a time, in processes that share the GPU or "
        "the cores; with --distribution=one_device each uses one of several GPUs. The results are "
        "the same. On a Ray cluster the default is as many as there is room for.",
        Role.COMMAND,
        lowest=1,
    )
    cpus_per_trial: float | None = setting(
        None,
        "CPUs that a run takes of a Ray cluster. Default: the share of its GPUs; without GPUs, all "
        "CPUs of the smallest machine.",
        Role.COMMAND,
        lowest=0.0,
    )
    gpus_per_trial: float | None = setting(
        None,
        "GPUs that a run takes of a Ray cluster; 0.5: two runs share one. Default: 1 if there are "
        "any.",
        Role.COMMAND,
        lowest=0.0,
    )


@dataclasses.dataclass(frozen=True)
class DeviceConfig:
    """Devices and precision."""

    distribution: Literal["auto", "one_device", "mirrored", "multi_worker", "tpu"] = setting(
        "auto",
        "Devices to train on. auto: the GPUs of this machine, or else its CPU.",
        Role.DEVICES,
    )
    use_tpu: bool = setting(False, "Same as --distribution=tpu.", Role.DEVICES)
    precision: Literal["auto", "float32", "bfloat16", "float16", "bfloat16_base"] = setting(
        "auto",
        "Precision of computation. auto: bfloat16 on GPUs from Ampere on, float16 on older ones "
        "with tensor cores (T4, V100), bfloat16_base on processors with AMX, float32 elsewhere. "
        "float16 has loss scaling. bfloat16_base: bfloat16 only in products with the base's "
        "kernels.",
        Role.DEVICES,
        earlier="float32",
    )
    tf32: bool = setting(
        True,
        "Multiply float32 in TF32, with 10 bits of fraction, on GPUs that have it: Ampere and "
        "later. TensorFlow does so by default. In Python, this replaces TensorFlow's own setting.",
        Role.DEVICES,
    )
    deterministic: bool = setting(
        False,
        "End with the same bytes on the same GPU each time, more slowly. On a CPU every run does.",
        Role.DEVICES,
    )
    jit_compile: bool | None = setting(
        None,
        "Compile the training and evaluation steps with XLA. Default: on one GPU yes, otherwise "
        "no.",
        Role.DEVICES,
        earlier=False,
    )
    gpu_memory_limit: int | None = setting(
        None,
        "Most memory of each GPU that a process takes, in MB; it is reserved at the start. With "
        "--parallel_trials=K, K + 1 times as much. Default: no limit; memory is taken as needed.",
        Role.COMMAND,
        lowest=1,
    )
    pad_to: int | None = setting(
        None,
        "Batches are padded to their longest input, rounded up to a multiple of this; 0: always to "
        "--max_seq_length. Default: 2 on CPU, 8 on GPU, 0 on TPU; if XLA compiles, which it does "
        "for each length: to 32, 64, 128, 256 or 512.",
        Role.DEVICES,
        lowest=0,
    )
    iterations_per_loop: int | None = setting(
        None,
        "Steps in one call, at most --save_checkpoints_steps. Default: 100 on TPU, else 1.",
        Role.PACE,
        lowest=1,
    )
    tpu_name: str | None = setting(None, "Name or grpc:// address of the TPU.", Role.ADDRESS)
    tpu_zone: str | None = setting(None, "Zone of the TPU.", Role.ADDRESS)
    gcp_project: str | None = setting(None, "Cloud project of the TPU.", Role.ADDRESS)
    master: str | None = setting(None, "Not used; kept for old command lines.", Role.UNUSED)
    num_tpu_cores: int = setting(8, "Not used: the TPU reports how many it has.", Role.UNUSED)

    @property
    def strategy(self) -> str:
        """`distribution`, which is `tpu` with `use_tpu`."""
        return "tpu" if self.use_tpu else self.distribution
