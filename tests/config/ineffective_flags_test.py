"""Flags that have no effect beside the others are named; nothing else is."""

import itertools

import pytest
from absl import flags

from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.config import settings
from adapter_bert_tf.config.ineffective_flags import ineffective_flags, ineffective_in_sweep
from adapter_bert_tf.config.setting import Command

CLASSIFIER, SQUAD = Command.CLASSIFIER, Command.SQUAD
NAMED = {
    "a number of layers": (CLASSIFIER, "--top_k=3", "without --tuning=top_k"),
    "a size": (CLASSIFIER, "--tuning=full --adapter_size=8", "without --tuning=adapters"),
    "a preset": (CLASSIFIER, "--tuning=head --adapter=pfeiffer", "without --tuning=adapters"),
    "layers": (CLASSIFIER, "--tuning=top_k --adapter_layers=1-2", "without --tuning=adapters"),
    "a start": (CLASSIFIER, "--tuning=top_k --adapter_init_scale=1", "without --tuning=adapters"),
    "a drop": (
        CLASSIFIER,
        "--do_train --tuning=top_k --adapter_drop=1",
        "without --tuning=adapters",
    ),
    "norms": (CLASSIFIER, "--tuning=full --notrain_layer_norm", "without --tuning=adapters"),
    "the pooler": (
        CLASSIFIER,
        "--tuning=full --train_pooler",
        "without --tuning=adapters or --tuning=multitask_adapters or",
    ),
    "scores": (CLASSIFIER, "--task_name=mrpc --regression", "without --task_name=tsv"),
    "a column": (CLASSIFIER, "--task_name=mrpc --text_a_column=x", "without --task_name=tsv"),
    "quotes": (CLASSIFIER, "--task_name=mrpc --noquoted", "without --task_name=tsv"),
    "the best": (CLASSIFIER, "--do_train --keep=best", "without --eval_every_steps"),
    "training": (
        CLASSIFIER,
        "--do_eval --class_weights=a=2 --keep=best --learning_rate=1 --eval_batch_size=9",
        "--learning_rate, --class_weights, --keep have no effect without --do_train.",
    ),
    "training on questions": (
        SQUAD,
        "--do_predict --num_train_epochs=9",
        "--num_train_epochs has no effect without --do_train.",
    ),
    "nothing in a variable of the shell": (
        CLASSIFIER,
        "--do_train --init_from=",
        "--init_from is empty, and counts as not given.",
    ),
    "nothing, and a sweep": (
        CLASSIFIER,
        "--sweep=grid.yaml --base_model=",
        "--base_model is empty",
    ),
    "a place of nothing": (CLASSIFIER, "--do_train --export_dir=x", "without --do_export"),
    "no answers": (SQUAD, "--null_score_diff_threshold=1", "without --version_2_with_negative."),
    "a projector": (
        CLASSIFIER,
        "--tuning=hyperformer++ --notask_projector --projected_size=5",
        "--projected_size=5 has no effect without --task_projector.",
    ),
    "a projector of nothing": (
        CLASSIFIER,
        "--projector_size=5",
        "without --tuning=hyperformer or --tuning=hyperformer++.",
    ),
}
SILENT = {
    "a drop of a saved adapter": (CLASSIFIER, "--do_eval --tuning=full --adapter_drop=1"),
    "a question of nothing": (SQUAD, "--do_predict --question= --context=x"),
    "a place of a model": (CLASSIFIER, "--do_export --export_dir=x"),
    "adapters": (CLASSIFIER, "--adapter_size=8 --notrain_layer_norm --train_pooler"),
    "upper layers": (CLASSIFIER, "--tuning=top_k --top_k=3"),
    "what is the default": (CLASSIFIER, "--top_k=2 --tuning=full --noregression"),
    "a projector": (CLASSIFIER, "--tuning=hyperformer --projected_size=5 --projector_size=1"),
    "a table": (CLASSIFIER, "--task_name=TSV --regression --delimiter=,"),
    "the best of many": (CLASSIFIER, "--do_train --keep=best --eval_every_steps=5"),
    "training": (CLASSIFIER, "--do_train --do_eval --learning_rate=1 --train_batch_size=9"),
    "rates of a sweep": (CLASSIFIER, "--sweep=grid.yaml --learning_rate=1"),
    "a sweep may have it": (CLASSIFIER, "--sweep=grid.yaml --top_k=3"),
    "no answers": (SQUAD, "--version_2_with_negative --null_score_diff_threshold=1"),
}


def parsed(command, text):
    values = flags.FlagValues()
    define_flags(command, values)
    values([command.value, "--output_dir=out", *text.split()])
    return config_of(values)


@pytest.mark.parametrize("case", NAMED)
def test_named(case):
    command, text, said = NAMED[case]
    (sentence,) = ineffective_flags(parsed(command, text))
    assert sentence.startswith("--") and said in sentence


@pytest.mark.parametrize("case", SILENT)
def test_silent(case):
    assert ineffective_flags(parsed(*SILENT[case])) == []


ADAPTERS = " or ".join(f"--tuning={n}" for n in settings.BY_NAME["adapter_size"].only_with[1])
RUNS = {  # Flags of the command, the grid, and what is said.
    "a flag that varies": ("--learning_rate=5e-3", {"learning_rate": [1e-3, 3e-4]}, [
        "--learning_rate=0.005 has no effect: each run has its own.",
    ]),
    "sizes of no adapter": ("", {"tuning": ["adapters", "head"], "adapter_size": [4, 8]}, [
        f"--adapter_size=4 has no effect without {ADAPTERS}. This concerns 1 of 4 runs.",
        f"--adapter_size=8 has no effect without {ADAPTERS}. This concerns 1 of 4 runs.",
    ]),
    "what no run needs": ("--top_k=3", {"learning_rate": [1e-3]}, [
        "--top_k=3 has no effect without --tuning=top_k.",
    ]),
    "what one of them needs": ("--top_k=3", {"tuning": ["adapters", "top_k"]}, []),
    "a subset for no evaluation": ("--max_eval_examples=50", {"learning_rate": [1e-3]}, [
        "--max_eval_examples=50 has no effect without --eval_every_steps.",
    ]),
    "a subset for --asha": ("--asha --max_eval_examples=50", {"learning_rate": [1e-3]}, []),
    "nothing": ("--adapter_size=8", {"learning_rate": [1e-3, 3e-4]}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", RUNS)
def test_in_a_sweep(case):
    text, grid, said = RUNS[case]
    flags_of_all = parsed(CLASSIFIER, f"--do_train --do_eval --sweep=grid.yaml {text}")
    of_run = flags_of_all.changed(sweep=None, asha=False)
    runs = [
        of_run.changed(seed=0, **dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]
    assert ineffective_in_sweep(flags_of_all, grid, runs) == said


def test_a_condition_is_another_flag_of_its_commands():
    for row in settings.SETTINGS:
        if row.only_with:
            other = settings.BY_NAME[row.only_with[0]]
            assert set(row.commands) & set(other.commands)
            assert not other.choices or set(row.only_with[1]) <= set(other.choices)
