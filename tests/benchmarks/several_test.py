"""The plan of the real runs of several tasks."""

from absl import flags

from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.task_list import entries
from adapter_bert_tf.tasks import find_task
from benchmarks import results, several_tasks

COMMANDS = [several_tasks.command(run) for run in several_tasks.PLAN]


def flags_of(command):
    parsed = flags.FlagValues()
    define_flags(Command.CLASSIFIER, parsed)
    parsed(command)
    return config_of(parsed)


def test_every_run_has_as_many_steps():
    for command in COMMANDS:
        epochs = flags_of(command).training.num_train_epochs
        assert int(several_tasks.EXAMPLES * epochs / several_tasks.BATCH) == several_tasks.STEPS


def test_every_run_has_all_tasks_and_the_metrics_exist():
    for command in COMMANDS:
        config = flags_of(command)
        listed = entries(config.data.task_name, config.command)
        assert [entry.name for entry in listed] == list(several_tasks.TASKS)
    for name, (_, metric) in several_tasks.TASKS.items():
        assert metric == find_task(name).metrics[0]  # The average is of these.


def test_runs_differ_in_method_and_seed_alone():
    same = {
        tuple(word for word in c if word not in several_tasks.METHODS[r.method])[:8]
        for c, r in zip(COMMANDS, several_tasks.PLAN, strict=True)
    }
    assert len(same) == 1
    assert [run.seed for run in several_tasks.PLAN if run.method == "per_task_adapters"] == [
        0,
        1,
        2,
    ]


def test_the_single_runs_beside_them_are_those_of_the_results():
    known = {(task, method) for task, method, _ in results.plan()}
    assert {
        (task, method) for task in several_tasks.TASKS for method in several_tasks.SEPARATE_METHODS
    } <= known
