"""From a configuration to the plan of a run: all checks that need no model."""

import dataclasses
import os
from collections.abc import Sequence

from absl import logging

from adapter_bert_tf.base import Base
from adapter_bert_tf.config import checks, settings
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import takes_subsets
from adapter_bert_tf.errors import Conflict, Mismatch, Missing, error_context
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.output.records import Fingerprint
from adapter_bert_tf.output.run_dir import RunDir
from adapter_bert_tf.run.batch_sizes import batches_of, training_settings
from adapter_bert_tf.run.checks import path_conflicts, split_history
from adapter_bert_tf.run.decided_precision import with_decided_precision
from adapter_bert_tf.run.fingerprint import content_of, fingerprint_of, warn_of_other_data
from adapter_bert_tf.run.init_from import InitialAdapter, load_initial_adapter, recorded_settings
from adapter_bert_tf.run.method.from_config import load_members, method_from_config
from adapter_bert_tf.run.output_contents import contents_of, run_dir
from adapter_bert_tf.run.plan import Method, Plan
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.run.saved_settings import with_saved_settings
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import TaskRunner
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store import SavedAdapter, contents, load_adapter
from adapter_bert_tf.store.adapter_dir import AdapterDir, require_outside_adapters
from adapter_bert_tf.store.combining.combine import drop_lowest_layers
from adapter_bert_tf.store.combining.stacking import with_below
from adapter_bert_tf.store.files import adapter_exists
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.training.tuning import METHODS


def plan_run(runner: TaskRunner, config: RunConfig, cache: RunCache) -> Plan:
    """Reads and checks all that a run needs, except the model. Raises `InputError`."""
    # === Paths, and what is in them already ===
    config = with_decided_precision(config, cache)
    checks.check(config)
    actions = config.actions
    require_outside_adapters(config.output.folder)
    OutputDir(config.output.folder, contents_of()).require_clear_names()
    check_replaced_folders(config)
    path_conflicts.check(config, runner.output_files(()))
    resumes = actions.do_train and not actions.overwrite
    if resumes:
        run_dir(config.output, fingerprint_of(config)).require_same_run()

    # === Saved adapters, and the settings that they decide ===
    initial = load_initial_adapter(config, runner.together)
    members = load_members(config, initial)
    below = members[0] if config.training.stack else None
    if initial:
        where = f"--init_from={initial.folder}"
        initial = dataclasses.replace(initial, saved=with_below(initial.saved, below, where))
    saved = None if actions.do_train else _load_saved(runner, config, below)
    config = with_saved_settings(config, saved) if saved else config
    runner.check(data_config(config), saved)

    # === Devices, base and method ===
    strategy = cache.strategy(config.device)
    batches = batches_of(config, strategy.num_replicas_in_sync)
    base = cache.base(config.base)
    if recorded := saved or (initial and initial.saved):
        base = base.for_adapter(recorded.config["base"])
    _check_length(config.data.max_seq_length, base)
    if actions.do_train:
        config = _with_pooler_default(config, base, runner, initial)
    names = runner.task_names(config)
    method = method_from_config(config.method, config.given, base, saved, initial, members, names)
    runner.check_method(method, initial)
    _check_merge(config, method)
    _check_cache_frozen(config, runner, method)

    # === Data, and the folder of a run on this data ===
    tasks = cache.data(data_config(config), base.vocabulary, saved, runner.read)
    split_history.warn(tasks, initial, members)
    _warn_of_token_types(tasks, base)
    content = content_of(tasks, base, method, initial, members)
    run = fingerprint_of(config, content, runner.is_evaluated(actions, tasks))
    folder = _checked_folder(config, runner.output_files(tasks), run)
    loss = runner.training_loss(tasks, config.training) if actions.do_train else None
    plan = Plan(
        tasks=tasks,
        actions=actions,
        evaluation=config.evaluation,
        output=config.output,
        base=base,
        method=method,
        saved=saved,
        batches=batches,
        training=training_settings(
            config, method, sum(task.count for task in tasks), loss, strategy.num_replicas_in_sync
        ),
        strategy=strategy,
        precision=config.device.precision,
        dropout=config.training.dropout,
        folder=folder,
        settings=dict(recorded_settings(config, initial)),
        initial_adapter=initial,
        members=members,
        cache_frozen=actions.do_train and config.training.cache_frozen,
    )
    _check_selection(runner, plan)
    return plan


def _check_merge(config: RunConfig, method: Method) -> None:
    """Raises `InputError` unless `--merge` can merge the method."""
    if not config.actions.merge or method.adapter is None:
        return
    if method.tuning.of_several_tasks:
        raise Conflict(
            f"--merge works with one task, whose weights the base takes in. Received: --tuning="
            f"{method.tuning.method}, of several. Leave out --merge."
        )
    with error_context("--merge"):
        method.adapter.check_mergeable()


def check_replaced_folders(config: RunConfig) -> None:
    """Raises `InputError` if a folder that is replaced as a whole is not ours."""
    output = config.output
    if config.actions.do_export:
        export = SavedModelDir(output.export_folder)
        export.require_replaceable()
        export.require_not_a_result(own=output.folder)
    if config.actions.do_train:
        AdapterDir(output.adapter_folder).require_replaceable()


def data_config(config: RunConfig) -> RunConfig:
    """Returns only the settings that decide which data a run reads; for a subset also the seed."""
    if config.keeps_features and not config.questions.features_dir:
        features_dir = os.path.join(config.output.folder, "features")
        config = config.changed(features_dir=features_dir)
    names = {*settings.DATA, *settings.with_role(Role.ONE_QUESTION)}
    subset = config.data.max_train_examples or takes_subsets(config.data.task_name, config.command)
    return config.only({*names, "seed"} if subset else names)


def _load_saved(runner: TaskRunner, config: RunConfig, below: Member | None) -> SavedAdapter | None:
    """Loads the adapter to apply; None if `--init_checkpoint` holds the trained weights."""
    folder = config.output.adapter_folder
    if not adapter_exists(folder) and not config.output.adapter_dir and config.base.init_checkpoint:
        return None
    saved = load_adapter(folder)
    if not runner.together:
        require_one_task(saved.config, folder)
    saved = with_below(saved, below, f"--adapter_dir={folder}")
    applied = drop_lowest_layers(saved, config.method.adapter_drop)
    if contents.expected_shapes(applied.config) != contents.expected_shapes(saved.config):
        logging.warning(
            "Not as the adapter was trained: --adapter_drop=%d leaves out the adapters of its "
            "lowest layers.",
            config.method.adapter_drop,
        )
    return applied


def _check_length(max_seq_length: int, base: Base) -> None:
    longest, meant = base.config.max_sequence_length, base.vocabulary.tokenizer.longest_text
    if max_seq_length > longest:
        raise Mismatch(
            f"--max_seq_length={max_seq_length} exceeds the base's position table, which has "
            f"{longest} rows."
        )
    if meant and max_seq_length > meant:
        logging.warning(
            "--max_seq_length=%d exceeds the model_max_length %d of the base's tokenizer.",
            max_seq_length,
            meant,
        )


def _warn_of_token_types(tasks: Sequence[TaskData], base: Base) -> None:
    """Warns if the second texts of pairs get no token type embedding."""
    if base.config.type_vocab_size == 1 and any(
        task.task_type.num_texts(task.adapter_config()["inputs"]) == 2 for task in tasks
    ):
        logging.warning(
            "The base has one token type (type_vocab_size 1): the second text of a pair gets no "
            "token type embedding, and is told apart by [SEP] alone."
        )


def _with_pooler_default(
    config: RunConfig, base: Base, runner: TaskRunner, initial: InitialAdapter | None
) -> RunConfig:
    """Decides whether the pooler is trained, if no user, earlier run or initial adapter did.

    BERT's pooler was pretrained to predict whether a sentence follows another, and adapter-bert
    keeps it. The pooler of a base for sentence embeddings has its initial values, and is trained.
    """
    if config.method.train_pooler is not None:
        if runner.uses_pooler and not (config.method.train_pooler or base.has_pooler):
            logging.warning("--train_pooler=false keeps the random pooler of a base without one.")
        return config
    is_open = not (initial and initial.has_task)
    is_used = runner.uses_pooler and is_open and not METHODS[config.method.tuning].changes_base
    return config.with_defaults(train_pooler=is_used and not base.has_trained_pooler)


def _check_cache_frozen(config: RunConfig, runner: TaskRunner, method: Method) -> None:
    if not (config.actions.do_train and config.training.cache_frozen):
        return
    if runner.together:
        raise Conflict("--cache_frozen works with one task. Leave it out.")
    if not method.tuning.frozen_layers:
        raise Conflict("--cache_frozen: no layer is frozen. Add --frozen_layers=N or leave it out.")


def _checked_folder(config: RunConfig, result_files: Sequence[str], run: Fingerprint) -> RunDir:
    """Returns the output folder. Raises `InputError` if this run may not use it."""
    folder = run_dir(config.output, run, result_files)
    folder.require_clear_names()
    folder.require_own_files()
    warn_of_other_data(config.actions.config, run.content)
    overwrite = config.actions.overwrite
    resumes = config.actions.do_train and not overwrite
    if resumes:
        folder.require_same_content()
    if config.actions.do_train and not (resumes and folder.is_finished()):
        folder.require_own_adapter(overwrite)
    return folder


def _check_selection(runner: TaskRunner, plan: Plan) -> None:
    evaluation = plan.evaluation
    if not plan.actions.do_train:
        return
    is_evaluated = evaluation.eval_every_steps or evaluation.keep == "best"
    if is_evaluated and not runner.is_evaluated(plan.actions, plan.tasks):
        raise Missing(
            "--eval_every_steps and --keep=best need the dev set. Add --do_eval, with the data "
            "that it reads."
        )
    if evaluation.patience and not evaluation.eval_every_steps:
        raise Missing("--patience counts evaluations during training. Add --eval_every_steps=N.")
