"""The plans of the real runs of HyperFormer: every command is one, of as many steps as is said."""

import pytest

from adapter_bert_tf.config.task_list import entries
from benchmarks import few_shot, hyper_ablations, low_resource, several_tasks
from tests.benchmarks.several_test import flags_of

SHORT = {16: 96, 100: 100, 500: 156}


def epochs_per_row(training):
    """Epochs for each row of a batch; times the examples it is the number of steps."""
    return training.num_train_epochs / training.train_batch_size


@pytest.mark.parametrize("run", hyper_ablations.PLAN, ids=lambda run: run.method)
def test_ablations_have_as_many_steps_on_the_same_tasks(run):
    found = flags_of(hyper_ablations.command(run))
    steps = several_tasks.EXAMPLES * epochs_per_row(found.training)
    assert int(steps) == hyper_ablations.STEPS
    assert [e.name for e in entries(found.data.task_name, found.command)] == list(
        several_tasks.TASKS
    )


@pytest.mark.parametrize("run", few_shot.PLAN[: len(few_shot.METHODS) * 3], ids=str)
def test_few_shots_have_as_many_steps(run):
    found = flags_of(few_shot.command(run))
    steps = run.examples * epochs_per_row(found.training)
    assert int(steps) == SHORT[run.examples]
    assert bool(found.training.init_from) == (few_shot.METHODS[run.method][0] is not None)


@pytest.mark.parametrize("run", low_resource.plan(), ids=str)
def test_low_resource_runs_have_as_many_steps(run):
    found = flags_of(low_resource.command(run))
    names = low_resource.COUNTS if run.task == "all" else [run.task]
    examples = sum(min(run.examples, low_resource.COUNTS[name]) for name in names)
    steps = examples * epochs_per_row(found.training)
    wanted = low_resource.STEPS if run.task == "all" else low_resource.STEPS_ALONE
    assert int(steps) == wanted


def test_a_row_is_an_average_of_all_tasks():
    alone = {
        low_resource.Run("adapters 12", 100, task, 0): {"eval": {f"eval_{metric}": 0.1 * i}}
        for i, (task, (_, metric)) in enumerate(several_tasks.TASKS.items())
    }
    assert low_resource.score(alone, "adapters 12", 100) == pytest.approx(20)
    assert low_resource.score(alone, "adapters 12", 500) is None
    assert "| adapters 12 | 20.0 |" in low_resource.low_resource(alone)[-1]
