"""Runs of a sweep as tasks of a Ray cluster."""

import time
from typing import Any

from adapter_bert_tf.errors import WorkerLost
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.sweeps.messages import Job, Outcome, Setup
from adapter_bert_tf.sweeps.parallel import Ended
from adapter_bert_tf.sweeps.process import SECONDS_TO_STOP
from adapter_bert_tf.sweeps.ray_cluster import task
from adapter_bert_tf.sweeps.ray_cluster.cluster import Resources

RETRIES = 3  # Of a run whose worker is lost; each continues from the last checkpoint.


class RayPool:
    """Tasks of Ray, one for each run.

    Args:
      resources: of a run.
      limit: most runs at a time; Ray lets those wait that the cluster has no room for.
    """

    def __init__(self, resources: Resources, limit: int) -> None:
        import ray

        self._ray: Any = ray
        self._task = ray.remote(task.execute_run)
        self._options: dict[str, Any] = {
            "num_cpus": resources.cpus,
            "num_gpus": resources.gpus,
            "max_retries": RETRIES,
            "retry_exceptions": [task.RunLost],
        }
        self._limit = limit
        self._jobs: dict[Any, Job] = {}

    def has_room(self) -> bool:
        """Whether fewer runs than the limit wait or are executed."""
        return len(self._jobs) < self._limit

    def is_busy(self) -> bool:
        """Whether runs wait or are executed."""
        return bool(self._jobs)

    def start(self, job: Job) -> None:
        """Submits a run."""
        # Ray makes the run's GPUs visible, and may leave all visible to a run without.
        setup = Setup.of_this_process(None if self._options["num_gpus"] else []).to_line()
        chosen = self._task.options(name=job.name, **self._options)
        reference = chosen.remote(setup, job.name, job.to_line())
        self._jobs[reference] = job

    def ended(self, seconds: float) -> list[Ended]:
        """Returns the runs that have ended."""
        references, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        return [Ended(self._jobs.pop(one), self._outcome(one)) for one in references]

    def _outcome(self, reference: Any) -> Outcome:
        errors = self._ray.exceptions
        try:
            return Outcome.from_line(self._ray.get(reference))
        except errors.TaskCancelledError:
            return Outcome()
        except errors.RayTaskError as error:
            reason = str(error.cause) if isinstance(error.cause, task.RunLost) else str(error)
        except errors.RayError as error:
            reason = str(error)
        lines = [line.strip() for line in reason.splitlines() if line.strip()]
        return Outcome(
            error=WorkerLost(
                f"{truncate(lines[-1] if lines else 'A worker was lost.', 400)} Ray started the "
                f"run up to {RETRIES + 1} times. Run the same command to continue."
            ),
            traceback=reason,
        )

    def stop(self) -> None:
        """Interrupts the tasks, whose runs save a checkpoint; those that wait do not start."""
        for reference in self._jobs:
            self._ray.cancel(reference)

    def close(self) -> None:
        """Interrupts what is left, and waits for its end."""
        self.stop()
        end = time.monotonic() + SECONDS_TO_STOP
        while self._jobs and time.monotonic() < end:
            self.ended(1.0)
