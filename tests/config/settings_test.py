"""The table of flags: every flag has a row and a role, and what follows from the roles."""

import dataclasses
import inspect
import pathlib
import pkgutil
import re
import subprocess
import sys
from typing import Literal

import pytest
from absl import flags

import adapter_bert_tf as abt
from adapter_bert_tf import cli
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.config import settings
from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.sections.model import MULTITASK_TUNINGS
from adapter_bert_tf.config.setting import Command, Setting, setting, settings_of_section
from adapter_bert_tf.config.train_options import TrainOptions
from adapter_bert_tf.training.tuning import MULTITASK_METHODS
from docs import generate_settings

ROOT = pathlib.Path(__file__).parents[2]
# What follows from the roles, by hand: a change of a role must be a decision.
FREE = """
    output_dir do_eval do_predict do_export merge export_dir eval_batch_size predict_batch_size
    overwrite
    config dry_run report cache_frozen save_checkpoints_steps iterations_per_loop verbose_logging
    features_dir question context tpu_name tpu_zone gcp_project master num_tpu_cores
    gpu_memory_limit parallel_trials sweep_minutes workers cpus_per_trial gpus_per_trial
"""
ONLY_RESULTS = """
    predict_file n_best_size max_answer_length null_score_diff_threshold adapter_name
    test_file decoding
"""
NOT_SWEPT = """
    task_name data_dir data_source train_file predict_file output_dir adapter_dir features_dir
    config sweep num_trials overwrite dry_run report do_train do_eval do_predict do_export merge
    export_dir split_seed dev_share seed adapter_name metric folds gpu_memory_limit
    parallel_trials dev_file test_file tfds_name text_files dev_files search num_samples asha
    sweep_minutes workers cpus_per_trial gpus_per_trial
"""
NOT_REPEATED = """
    output_dir adapter_dir export_dir config overwrite gpu_memory_limit parallel_trials
    sweep_minutes workers cpus_per_trial gpus_per_trial
"""
DATA = {
    Command.CLASSIFIER: """
        task_name data_dir data_source text_a_column text_b_column label_column delimiter header
        quoted encoding skip_bad_rows dev_share task_type multi_label regression split_seed
        do_train do_eval do_predict max_train_examples max_seq_length adapter_name metric folds fold
        train_file dev_file test_file in_memory_mb features_dir
    """,
    Command.SQUAD: """
        do_train do_eval do_predict data_source data_dir train_file predict_file max_train_examples
        version_2_with_negative max_seq_length doc_stride max_query_length n_best_size
        max_answer_length null_score_diff_threshold features_dir metric
    """,
    Command.TAGGER: """
        do_train do_eval do_predict data_source data_dir train_file dev_file test_file tfds_name
        tag_column word_column separator comments encoding scheme stride decoding adapter_name
        max_train_examples max_seq_length metric task_name
    """,
    Command.ADAPT: """
        do_train do_eval text_files dev_files text_unit dev_share mask_share whole_word_masking
        adapter_name max_seq_length features_dir metric
    """,
}
METHOD = (
    "tuning",
    "adapter",
    "adapter_size",
    "adapter_layers",
    "adapter_init_scale",
    "top_k",
    "frozen_layers",
    "train_layer_norm",
    "train_pooler",
    "train_members",
    "fusion_cooling_steps",
    "hyper_init",
    "task_embedding_size",
    "projector_size",
    "projected_size",
    "task_projector",
    "conditional_layer_norm",
    "pal_size",
    "pal_heads",
)
BASE = "base_model bert_config_file vocab_file init_checkpoint do_lower_case"
READ = """
    data_dir base_model vocab_file bert_config_file init_checkpoint init_from fuse train_file
    predict_file dev_file test_file stack text_files dev_files
"""
WRITTEN = "output_dir export_dir features_dir"


@pytest.mark.parametrize(
    ("names", "by_hand"),
    [
        (settings.FREE, FREE),
        (settings.ONLY_RESULTS, ONLY_RESULTS),
        (settings.NOT_SWEPT, NOT_SWEPT),
        (settings.NOT_REPEATED, NOT_REPEATED),
        (settings.with_role(Role.BASE), BASE),
        (settings.with_role(Role.SWEEP), "sweep num_trials search num_samples asha"),
        (settings.with_role(Role.APPLY, Role.EXPORT), "do_eval do_predict do_export merge"),
        (settings.paths_read(training=True), READ),
        (settings.paths_read(training=False), READ + " adapter_dir"),
        (settings.paths_written(training=True), WRITTEN + " adapter_dir"),
        (settings.paths_written(training=False), WRITTEN),
    ],
)
def test_what_follows_from_the_roles(names, by_hand):
    assert sorted(names) == sorted(by_hand.split())


@pytest.mark.parametrize("of", Command)
def test_what_decides_which_data_is_read(of):
    own = {row.name for row in settings.settings_of(of)}
    assert sorted(own.intersection(settings.DATA)) == sorted(DATA[of].split())


def test_the_methods_flags_are_named_in_their_order():
    assert settings.with_role(Role.METHOD) == METHOD


def test_the_flags_know_the_methods_that_there_are():
    """Their room loads no TensorFlow, so it has names of its own."""
    assert MULTITASK_TUNINGS == MULTITASK_METHODS


def test_evaluation_during_training_is_a_part_of_the_run_and_swept():
    for name in ("eval_every_steps", "keep", "patience", "max_eval_examples"):
        assert settings.BY_NAME[name].role is Role.TRAINING
        others = settings.FREE + settings.ONLY_RESULTS + settings.NOT_SWEPT
        assert name not in others + settings.NOT_REPEATED


def _help(script, word):
    done = subprocess.run(
        [sys.executable, f"{script}.py", word],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("absl.")[0]


@pytest.mark.parametrize("of", Command)
def test_every_flag_of_a_command_has_one_row(of):
    in_help = re.findall(r"^  --(?:\[no\])?(\w+)", _help(of.value, "--helpfull"), re.M)
    assert in_help == [row.name for row in settings.settings_of(of)]


@pytest.mark.parametrize("of", Command)
def test_help_explains_the_common_flags_and_names_all(of):
    page = _help(of.value, "--help")
    explained = re.findall(r"^  --(?:\[no\])?(\w+)", page, re.M)
    names = {row.name for row in settings.settings_of(of)}
    common = [row.name for row in settings.common_of(of)]
    assert explained == common and set(common) & set(settings.COMMON)
    _, more = page.split("More flags")
    others = re.findall(r"--(?:\[no\])?(\w+)", more.partition("\n")[2])
    assert len(others) == len(set(others)) and set(others) == names - set(explained)
    lines = dict(re.findall(r"^  (\w+): +(.*)", more, re.M))
    assert "--eval_every_steps" in lines["evaluation"]
    assert lines.keys() < settings.SECTIONS.keys()


def test_every_role_is_some_flags_and_every_flag_of_some_command():
    assert {row.role for row in settings.SETTINGS} == set(Role)
    assert all(row.commands for row in settings.SETTINGS)
    assert len({row.name for row in settings.SETTINGS}) == len(settings.SETTINGS)
    assert len({role.meaning for role in Role}) == len(Role)


def test_a_setting_without_a_role_fails():
    with pytest.raises(TypeError, match="role"):
        setting(1, "How deep.")
    with pytest.raises(ValueError, match="depth needs a role"):
        Setting("depth", "method", "integer", 1, "How deep.", None)


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("number", {}, "unknown kind"),
        ("choice", {}, "needs choices"),
        ("string", {"choices": ("a",)}, "or no choice"),
        ("string", {"lowest": 1}, "bounds"),
        ("integer", {"path": "read"}, "is a path"),
    ],
)
def test_a_setting_whose_attributes_contradict_each_other_fails(kind, more, message):
    with pytest.raises(ValueError, match=message):
        Setting("depth", "method", kind, None, "How deep.", Role.METHOD, **more)


def test_a_section_is_its_settings():
    """Kind and choices follow from the annotation of a field."""

    @dataclasses.dataclass(frozen=True)
    class Section:
        depth: int | None = setting(None, "How deep.", Role.METHOD, lowest=1)
        speed: Literal["slow", "fast"] = setting("slow", "How fast.", Role.PACE)
        deep: bool = setting(False, "Whether.", Role.METHOD)

    rows = settings_of_section("s", Section)
    assert [(r.name, r.kind, r.default, r.choices, r.lowest) for r in rows] == [
        ("depth", "integer", None, (), 1),
        ("speed", "choice", "slow", ("slow", "fast"), None),
        ("deep", "boolean", False, (), None),
    ]


@pytest.mark.parametrize("path", [generate_settings.PAGE, generate_settings.OPTIONS])
def test_generated_files_are_up_to_date(path):
    text = {
        generate_settings.PAGE: generate_settings.page,
        generate_settings.OPTIONS: generate_settings.options_module,
    }[path]()
    written = (ROOT / path).read_text(encoding="utf-8")
    assert written == text, "Run `python docs/generate_settings.py`."


def test_the_signature_of_train_has_every_option():
    names = set(inspect.signature(abt.train).parameters)
    options = {row.name for row in settings.python_options()}
    assert options == set(TrainOptions.__annotations__) and options < names
    assert {"learning_rate", "eval_every_steps"} < options and "do_predict" not in names


@pytest.fixture(params=Command)
def defined(request):
    """(`Command`, its flags as absl parses an empty command line)."""
    values = flags.FlagValues()
    define_flags(request.param, values)
    values(["command"])
    return request.param, values


def test_flags_are_defined_as_their_rows_say(defined):
    of, values = defined
    for row in settings.settings_of(of):
        assert values[row.name].value == row.default_of(of)
        assert row.help in values[row.name].help
    assert values.max_seq_length == (384 if of is Command.SQUAD else 128)


def test_bounds_and_choices_are_checked(defined):
    _, values = defined
    for argument in ("--seed=-1", f"--seed={2**32}", "--warmup_proportion=1.1", "--keep=first"):
        with pytest.raises(flags.IllegalFlagValueError):
            values(["command", argument])


def test_the_command_starts_without_tensorflow():
    """All but what it starts by name, as it does the jobs."""
    names = [found.name for found in pkgutil.iter_modules(cli.__path__)]
    modules = [f"{cli.__name__}.{name}" for name in names if name != "store_commands"]
    check = f"import sys, {', '.join(modules)}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=False).returncode == 0
