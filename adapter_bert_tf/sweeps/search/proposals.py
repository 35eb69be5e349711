"""Random search and tree-structured Parzen estimators, by Optuna's samplers (ask and tell).

A proposal is a function of the seed, its number and the results known then: nothing else has to be
stored for a restart, and the version of Optuna decides.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from adapter_bert_tf.errors import Unavailable
from adapter_bert_tf.sweeps.results import Setting
from adapter_bert_tf.sweeps.search.space import is_range, rounded


class Trial(NamedTuple):
    """A setting that was proposed, and what is known of it."""

    setting: Setting
    state: Literal["open", "finished", "failed"] = "open"
    score: float = -math.inf  # Higher is better; of a stopped run that at `step`.
    step: int | None = None  # At which it was stopped.


def require_optuna() -> None:
    """Raises `InputError` if Optuna is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise Unavailable(
            '--search needs Optuna: pip install "adapter_bert_tf[search]".'
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def propose(
    search: str, grid: Mapping[str, Any], seed: int, trials: Sequence[Trial]
) -> dict[str, Any]:
    """Returns the next setting to try, which may be one of those before.

    Args:
      search: `random` or `tpe`.
      grid: dict from setting to its values or its range.
      seed: of the search.
      trials: all settings proposed before, in their order.
    """
    import optuna

    number = np.random.SeedSequence([seed, len(trials)]).generate_state(1)[0]
    kind = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}[search]
    study = optuna.create_study(sampler=kind(seed=int(number)), direction="maximize")
    distributions = {name: _distribution(name, values) for name, values in grid.items()}
    if search == "tpe":
        study.add_trials([_as_optuna(trial, distributions) for trial in trials])
    return rounded(grid, study.ask(distributions).params)


def draw(grid: Mapping[str, Any], seed: int, count: int) -> list[dict[str, Any]]:
    """Returns the different settings among `count` random ones."""
    settings: list[dict[str, Any]] = []
    trials: list[Trial] = []
    for _ in range(count):
        setting = propose("random", grid, seed, trials)
        trials.append(Trial(setting))
        if setting not in settings:
            settings.append(setting)
    return settings


def _distribution(name: str, values: Any) -> Any:
    from optuna import distributions

    if not is_range(values):
        return distributions.CategoricalDistribution(values)
    low, high, log, step = (values[key] for key in ("low", "high", "log", "step"))
    if isinstance(low, int):
        return distributions.IntDistribution(low, high, log=log, step=step or 1)
    return distributions.FloatDistribution(low, high, log=log, step=step)


def _as_optuna(trial: Trial, distributions: Mapping[str, Any]) -> Any:
    """Returns a trial with its state, as Optuna has it; the worst is pruned without a value."""
    import optuna

    states = optuna.trial.TrialState
    common: dict[str, Any] = {"params": trial.setting, "distributions": {**distributions}}
    if trial.state == "open":
        return optuna.create_trial(state=states.RUNNING, **common)
    if trial.state == "finished":
        return optuna.create_trial(state=states.COMPLETE, value=trial.score, **common)
    at = {} if trial.step is None else {trial.step: trial.score}
    return optuna.create_trial(state=states.PRUNED, intermediate_values=at, **common)
