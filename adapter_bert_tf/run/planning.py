"""From a configuration to the plan of a run: all checks that need no model."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.config import checks, settings
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import takes_subsets
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.output.run_dir import RunDir
from adapter_bert_tf.run.batch_sizes import batches_of, distribution, training_settings
from adapter_bert_tf.run.checks import path_conflicts, split_history
from adapter_bert_tf.run.fingerprint import content_of, fingerprint_of, warn_of_other_data
from adapter_bert_tf.run.init_from import load_initial_adapter, recorded_settings
from adapter_bert_tf.run.method.from_config import method_from_config
from adapter_bert_tf.run.method.fusion_members import load_members
from adapter_bert_tf.run.output_contents import contents_of, run_dir
from adapter_bert_tf.run.plan import Actions, Method, ModelSelection, OutputPaths, Plan
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.saved_settings import with_earlier_defaults, with_saved_settings
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store import SavedAdapter, contents, load_adapter
from adapter_bert_tf.store.adapter_dir import AdapterDir, require_outside_adapters
from adapter_bert_tf.store.combine import drop_lowest_layers
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.training.tuning import uses_train_pooler


def plan_run(runner: TaskRunner, config: RunConfig, cache: RunCache) -> Plan:
    """Reads and checks all that a run needs, except the model.

    Args:
      runner: of the task's type.
      config: of the command, or of one run of a sweep.
      cache: what the runs of this process share.

    Raises:
      InputError: for anything that the user can fix.
    """
    config = with_earlier_defaults(config)
    actions, paths = actions_of(config), paths_of(config)
    require_outside_adapters(paths.output_dir)
    OutputDir(paths.output_dir, contents_of()).require_clear_names()
    check_replaced_folders(actions, paths)
    path_conflicts.check(config, paths, runner.output_files(()))
    initial = load_initial_adapter(config, runner.together)
    members = load_members(config, initial)
    resumes = actions.train and not actions.overwrite
    if resumes:
        run_dir(paths, fingerprint_of(config)).require_same_run()
    saved = None if actions.train else _load_saved(runner, config, paths)
    config = with_saved_settings(config, saved) if saved else config
    runner.check(data_config(config), saved)
    strategy = strategy_of(config, cache)
    batches = batches_of(config, strategy.num_replicas_in_sync)
    base = cache.base(config.base)
    _check_length(config.data.max_seq_length, base)
    if actions.train:  # An initial adapter has decided about its pooler.
        config = with_pooler_default(config, base, runner.uses_pooler and not initial)
    method = method_from_config(
        config.method, config.given, base, saved, initial, members, runner.task_names(config)
    )
    runner.check_method(method, initial)
    tasks = cache.data(data_config(config), base.vocabulary, saved, runner.read)
    split_history.warn(tasks, initial, members)
    content = content_of(tasks, base, method, initial, members)
    folder = _checked_folder(config, paths, runner.output_files(tasks), resumes, content)
    training = training_settings(config, method, sum(task.count for task in tasks))
    if actions.train:
        loss = runner.training_loss(
            tasks, config.training.class_weights, config.training.label_smoothing
        )
        training = dataclasses.replace(training, loss=loss)
    plan = Plan(
        tasks=tasks,
        actions=actions,
        paths=paths,
        base=base,
        method=method,
        saved=saved,
        batches=batches,
        training=training,
        selection=_selection(config),
        strategy=strategy,
        precision=config.device.precision,
        dropout=config.training.dropout,
        folder=folder,
        settings=dict(recorded_settings(config)),
        initial_adapter=initial,
        members=members,
        cache_frozen=_caches_frozen(config, runner, method),
    )
    _check_selection(runner, plan)
    return plan


def _checked_folder(
    config: RunConfig,
    paths: OutputPaths,
    patterns: Sequence[str],
    resumes: bool,
    content: Mapping[str, Any],
) -> RunDir:
    """The output folder, which this run may use. Raises `InputError`.

    Args:
      config: of the run.
      paths: folders that it writes.
      patterns: of the names of its result files.
      resumes: whether it continues what an earlier process left.
      content: what it is made of besides its settings.
    """
    folder = run_dir(paths, fingerprint_of(config, content), patterns)
    folder.require_clear_names()
    folder.require_own_files()
    warn_of_other_data(config.actions.config, content)
    if resumes:
        folder.require_same_content()
    if config.actions.do_train and not (resumes and folder.is_finished()):
        folder.require_own_adapter(config.actions.overwrite)
    return folder


def _caches_frozen(config: RunConfig, runner: TaskRunner, method: Method) -> bool:
    """Whether to keep the output of frozen layers. Raises `InputError` where there is none."""
    wanted = config.actions.do_train and config.training.cache_frozen
    if wanted and runner.together:
        raise InputError("--cache_frozen works with one task. Leave it out.")
    if wanted and not method.tuning.frozen_layers:
        raise InputError(
            "--cache_frozen: no layer is frozen. Add --frozen_layers=N, or leave it out."
        )
    return wanted


def with_pooler_default(config: RunConfig, base: Base, is_used: bool) -> RunConfig:
    """The configuration, with the base's answer where the user and an earlier run gave none.

    BERT's pooler was trained with the rest, to predict whether a sentence follows another, and
    adapter-bert keeps it. A base for sentence embeddings does not use its pooler: its checkpoint
    holds the pooler's initial values, which are trained with the head.

    Args:
      config: of a run that trains.
      base: `Base`.
      is_used: whether the run's heads read the pooler.
    """
    if config.method.train_pooler is not None:
        return config
    wanted = is_used and uses_train_pooler(config.method.tuning) and not base.has_trained_pooler
    return config.with_defaults(train_pooler=wanted)


def strategy_of(config: RunConfig, cache: RunCache) -> tf.distribute.Strategy:
    """The strategy of the devices that the settings name."""
    device = config.device
    return cache.strategy(
        distribution(config), device.tpu_name, device.tpu_zone, device.gcp_project
    )


def actions_of(config: RunConfig) -> Actions:
    """The actions that the settings name. Raises `InputError` if there is none."""
    checks.check_actions(config)
    actions = config.actions
    return Actions(
        train=actions.do_train,
        evaluate=actions.do_eval,
        predict=actions.do_predict,
        export=actions.do_export,
        dry_run=actions.dry_run,
        overwrite=actions.overwrite,
        report=config.output.report,
    )


def paths_of(config: RunConfig) -> OutputPaths:
    """The folders that the run writes."""
    output = config.output
    out = output.folder
    return OutputPaths(
        output_dir=out,
        adapter_dir=output.adapter_dir or os.path.join(out, "adapter"),
        export_dir=output.export_dir or os.path.join(out, "saved_model"),
    )


def check_replaced_folders(actions: Actions, paths: OutputPaths) -> None:
    """Requires that folders which are replaced as a whole are ours. Raises `InputError`."""
    if actions.export:
        export = SavedModelDir(paths.export_dir)
        export.require_replaceable()
        export.require_not_a_result(own=paths.output_dir)
    if actions.train:
        AdapterDir(paths.adapter_dir).require_replaceable()


def _load_saved(runner: TaskRunner, config: RunConfig, paths: OutputPaths) -> SavedAdapter | None:
    """The saved adapter to evaluate, or None if a trained checkpoint is to be used instead."""
    there = adapter_exists(paths.adapter_dir)
    if not there and not config.output.adapter_dir and config.base.init_checkpoint:
        return None
    saved = load_adapter(paths.adapter_dir)
    if not runner.together:
        require_one_task(saved.config, paths.adapter_dir)
    applied = drop_lowest_layers(saved, config.method.adapter_drop)
    if contents.expected_shapes(applied.config) != contents.expected_shapes(saved.config):
        logging.warning(
            "Not as the adapter was trained: --adapter_drop=%d leaves out the adapters of its "
            "lowest layers.",
            config.method.adapter_drop,
        )
    return applied


def data_config(config: RunConfig) -> RunConfig:
    """Only the settings that decide which data a run reads; of a subset the seed does too."""
    if config.answers_questions and not config.questions.features_dir:
        features_dir = os.path.join(config.output.folder, "features")
        config = config.changed(features_dir=features_dir)
    names = {*settings.DATA, *settings.with_role(Role.ONE_QUESTION)}
    subset = config.data.max_train_examples or takes_subsets(config.data.task_name)
    return config.only({*names, "seed"} if subset else names)


def _check_length(max_seq_length: int, base: Base) -> None:
    longest = base.config.max_sequence_length
    if max_seq_length > longest:
        raise InputError(
            f"--max_seq_length={max_seq_length} exceeds the base's position table, which has "
            f"{longest} rows."
        )


def _selection(config: RunConfig) -> ModelSelection:
    evaluation = config.evaluation
    return ModelSelection(
        every=evaluation.eval_every_steps, keep=evaluation.keep, patience=evaluation.patience
    )


def _check_selection(runner: TaskRunner, plan: Plan) -> None:
    selection = plan.selection
    if not plan.actions.train:
        return
    if (selection.every or selection.keep == "best") and not runner.is_evaluated(plan):
        raise InputError(
            "--eval_every_steps and --keep=best need the dev set. Add --do_eval, with the data "
            "that it reads."
        )
    if selection.patience and not selection.every:
        raise InputError("--patience counts evaluations during training. Add --eval_every_steps=N.")
