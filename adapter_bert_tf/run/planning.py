"""From flags to the plan of a run: every check that needs no model, in one place."""

import dataclasses
import os
from collections.abc import Sequence

import tensorflow as tf
from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.config import checks, table
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_flags import Part, RunFlags
from adapter_bert_tf.config.task_list import takes_subsets
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.losses import Loss
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.run import saved_settings
from adapter_bert_tf.run.batch_sizes import batches_of, distribution, training_settings
from adapter_bert_tf.run.checks import path_conflicts, split_history
from adapter_bert_tf.run.content import content_of, warn_of_other_data
from adapter_bert_tf.run.earlier_defaults import with_earlier_defaults
from adapter_bert_tf.run.fingerprint import fingerprint_of
from adapter_bert_tf.run.init_from import load_initial_adapter, recorded_flags
from adapter_bert_tf.run.method import from_config, pooler
from adapter_bert_tf.run.method.fusion_members import load_members
from adapter_bert_tf.run.output_contents import contents_of, run_dir
from adapter_bert_tf.run.plan import Actions, Choice, Method, Places, Plan
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.task_runner import TaskData, TaskRunner
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store import SavedAdapter, contents, load_adapter
from adapter_bert_tf.store.adapter_dir import AdapterDir, require_outside_adapters
from adapter_bert_tf.store.combine import drop_lowest_layers
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.multitask import require_one_task


def plan_run(kind: TaskRunner, flags: RunFlags, reused: RunCache) -> Plan:
    """Reads and checks all that a run needs, but for the model.

    Args:
      kind: of its tasks.
      flags: of the command, or of one run of a sweep.
      reused: what the runs of this process share.

    Raises:
      InputError: for whatever the user can mend.
    """
    flags = with_earlier_defaults(flags)
    actions, places = actions_of(flags), places_of(flags)
    require_outside_adapters(places.output_dir)
    OutputDir(places.output_dir, contents_of()).require_clear_names()
    check_places(actions, places)
    path_conflicts.check(flags, actions, places, kind.output_files(()))
    start = load_initial_adapter(flags, kind.together)
    members = load_members(flags, start)
    takes_up = actions.train and not actions.overwrite
    if takes_up:
        run_dir(places, fingerprint_of(flags)).require_same_run()
    saved = None if actions.train else _find_saved(kind, flags, places)
    flags = saved_settings.with_saved_settings(flags, saved) if saved else flags
    asked = data_flags(flags)
    kind.check(asked, saved)
    strategy = strategy_of(flags, reused)
    batches = batches_of(flags, actions, strategy.num_replicas_in_sync)
    base = reused.base(flags.part(table.with_role(Role.BASE)))
    _check_length(flags.max_seq_length, base)
    if actions.train:  # An adapter to begin from has decided it for itself.
        flags = pooler.with_pooler_default(flags, base, kind.uses_pooler and not start)
    roles = table.with_role(Role.METHOD, Role.LEFT_OUT)
    tasks_named = kind.task_names(asked)
    chosen = from_config.method_from_flags(
        flags.part(roles), flags.given, base, saved, start, members, tasks_named
    )
    kind.check_method(chosen, start)
    tasks = reused.data(asked, base.vocabulary, saved, kind.read)
    split_history.warn(tasks, start, members)
    names = kind.output_files(tasks)
    content = content_of(tasks, base, chosen, start, members)
    folder = run_dir(places, fingerprint_of(flags, content), names)
    folder.require_clear_names()
    folder.require_own_files()
    warn_of_other_data(flags.config, content)
    if takes_up:
        folder.require_same_content()
    if actions.train and not (takes_up and folder.is_finished()):
        folder.require_own_adapter(actions.overwrite)
    training = training_settings(flags, actions, chosen, sum(task.count for task in tasks))
    if actions.train:
        training = dataclasses.replace(training, loss=_loss(kind, flags, tasks))
    plan = Plan(
        kind=kind, tasks=tasks, actions=actions, places=places, base=base, method=chosen,
        saved=saved, batches=batches, training=training, choice=_choice(flags), strategy=strategy,
        precision=flags.precision, dropout=flags.dropout, folder=folder,
        flags=recorded_flags(flags),
        start=start, members=members, cache_frozen=_cache_frozen(flags, kind, chosen),
    )  # fmt: skip
    _check_choice(plan)
    return plan


def _cache_frozen(flags: RunFlags, kind: TaskRunner, chosen: Method) -> bool:
    """Whether to keep what frozen layers give. Raises `InputError` where there is nothing to."""
    wanted = flags.do_train and getattr(flags, "cache_frozen", False)
    if wanted and kind.together:
        raise InputError("--cache_frozen is of one task. Leave it out.")
    if wanted and not chosen.tuning.frozen_layers:
        raise InputError("--cache_frozen: no layer is frozen. Add --frozen_layers=N, or leave it.")
    return wanted


def strategy_of(flags: RunFlags, reused: RunCache) -> tf.distribute.Strategy:
    """The strategy of the devices that the flags name; says what they are, the first time."""
    return reused.strategy(distribution(flags), flags.tpu_name, flags.tpu_zone, flags.gcp_project)


def actions_of(flags: RunFlags) -> Actions:
    """What the flags ask for. Raises `InputError` if that is nothing."""
    checks.check_actions(flags)
    return Actions(
        train=flags.do_train,
        evaluate=flags.do_eval,
        predict=flags.do_predict,
        export=flags.do_export,
        dry_run=flags.dry_run,
        overwrite=flags.overwrite,
        report=flags.report,
    )


def places_of(flags: RunFlags) -> Places:
    """Where what the flags ask for goes."""
    out = flags.output_dir
    return Places(
        output_dir=out,
        adapter_dir=flags.adapter_dir or os.path.join(out, "adapter"),
        export_dir=flags.export_dir or os.path.join(out, "saved_model"),
    )


def check_places(actions: Actions, places: Places) -> None:
    """What is replaced as a whole must be of our making. Raises `InputError`."""
    if actions.export:
        export = SavedModelDir(places.export_dir)
        export.require_replaceable()
        export.require_not_a_result(own=places.output_dir)
    if actions.train:
        AdapterDir(places.adapter_dir).require_replaceable()


def _find_saved(kind: TaskRunner, flags: RunFlags, places: Places) -> SavedAdapter | None:
    """The saved adapter to evaluate, or None if a trained checkpoint is to be used instead."""
    if adapter_exists(places.adapter_dir) or flags.adapter_dir or not flags.init_checkpoint:
        saved = load_adapter(places.adapter_dir)
        if not kind.together:
            require_one_task(saved.config, places.adapter_dir)
        applied = drop_lowest_layers(saved, flags.adapter_drop)
        if contents.expected_shapes(applied.config) != contents.expected_shapes(saved.config):
            logging.warning(
                "Not as the adapter was trained: --adapter_drop=%d leaves out the adapters of its "
                "lowest layers.",
                flags.adapter_drop,
            )
        return applied
    return None


def data_flags(flags: RunFlags) -> Part:
    """The flags that decide which data a run holds; of a subset the seed decides as well."""
    if "features_dir" in flags.values and not flags.features_dir:
        flags = flags.changed(features_dir=os.path.join(flags.output_dir, "features"))
    names = (*table.DATA, *table.with_role(Role.ONE_QUESTION))
    subset = flags.max_train_examples or takes_subsets(getattr(flags, "task_name", None))
    return flags.part((*names, "seed") if subset else names)


def _check_length(max_seq_length: int, base: Base) -> None:
    longest = base.config.max_sequence_length
    if max_seq_length > longest:
        raise InputError(
            f"--max_seq_length={max_seq_length} is over the base's position "
            f"table, which has {longest} rows."
        )


def _loss(kind: TaskRunner, flags: RunFlags, tasks: Sequence[TaskData]) -> Loss | None:
    weights = getattr(flags, "class_weights", None)
    return kind.training_loss(tasks, weights, getattr(flags, "label_smoothing", 0.0))


def _choice(flags: RunFlags) -> Choice:
    return Choice(every=flags.eval_every_steps, keep=flags.keep, patience=flags.patience)


def _check_choice(plan: Plan) -> None:
    choice = plan.choice
    if not plan.actions.train:
        return
    if (choice.every or choice.keep == "best") and not plan.kind.is_evaluated(plan):
        raise InputError(
            "--eval_every_steps and --keep=best need the dev set. Add --do_eval, with the data "
            "that it reads."
        )
    if choice.patience and not choice.every:
        raise InputError("--patience counts evaluations during training. Add --eval_every_steps=N.")
