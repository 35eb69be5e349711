"""What differs between classification and question answering."""

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.command.run_flags import Part
from adapter_bert_tf.data.share import Share
from adapter_bert_tf.heads import Head
from adapter_bert_tf.run import output_files
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.store import SavedAdapter, contents, save_adapter, schema

if TYPE_CHECKING:
    from adapter_bert_tf.run.job import Job
    from adapter_bert_tf.run.plan import Plan


class TaskData(Protocol):
    """The data of one task of a run.

    Attributes:
      name: of the task.
      count: number of training examples.
      metric: key, in the results, of the metric to choose by; more is better.
      head: `Head`.
      labels_in_order: label strings in the order of their ids.
    """

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def head(self) -> Head: ...
    @property
    def labels_in_order(self) -> Sequence[str]: ...

    def adapter_config(self) -> dict[str, Any]:
        """What a saved adapter says of the task."""

    def record(self) -> dict[str, Any]:
        """What `run.json` says of the data."""


class Kind(abc.ABC):
    """A kind of tasks."""

    @abc.abstractmethod
    def check(self, flags: Part, saved: SavedAdapter | None) -> None:
        """Checks the flags that say what is read, and the saved adapter. Raises `InputError`."""

    @abc.abstractmethod
    def read(
        self, flags: Part, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[TaskData, ...]:
        """The data of the tasks."""

    @abc.abstractmethod
    def train_batches(self, plan: "Plan", start: int, share: Share) -> tf.data.Dataset:
        """The batches from step `start` to the last, a `Share` of each."""

    def begin_training(self, job: "Job") -> None:
        """Does to the model what is to be done before training, if anything."""
        return

    @abc.abstractmethod
    def finish_training(self, job: "Job") -> None:
        """Does to the model what is to be done after training, if anything."""

    @abc.abstractmethod
    def is_evaluated(self, plan: "Plan") -> bool:
        """Whether the run has results."""

    @abc.abstractmethod
    def evaluate(self, job: "Job") -> dict[str, float]:
        """The results; writes nothing."""

    @abc.abstractmethod
    def predict(self, job: "Job") -> None:
        """Writes predictions, if the job writes."""

    @abc.abstractmethod
    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        """Patterns of the files in `--output_dir` that are this kind's own."""

    def score(self, metrics: Sequence[str], results: Mapping[str, float]) -> float:
        """The number to choose runs and weights by, more is better.

        Args:
          metrics: the metric of each task, keys of the results; the mean of these counts.
          results: of `evaluate`.
        """
        return sum(results[metric] for metric in metrics) / len(metrics)

    def save(self, job: "Job") -> None:
        """Writes the adapter directory of a trained job, with its result if there is one.

        Raises:
          InputError: when another run has written its adapter there meanwhile.
        """
        job.plan.folder.check_adapter_still(job.plan.actions.overwrite)
        kept = contents.kept_variables(job.model, job.plan.method.tuning)
        save_adapter(
            job.plan.places.adapter_dir, self.description(job), kept, job.plan.method.dtype
        )

    def description(self, job: "Job") -> dict[str, Any]:
        """What the adapter directory of a trained job says."""
        plan, task, results = job.plan, job.plan.only_task, job.record.get("eval")
        metric = results and {
            "name": task.metric.removeprefix("eval_"),
            "value": results[task.metric],
            "split": "dev",
        }
        return schema.describe(
            base=plan.folder.content["base"],
            tuning=plan.method.tuning,
            adapter=plan.method.parts,
            metric=metric or None,
            global_step=job.record.get("global_step", 0),
            command=output_files.command(),
            run=plan.folder.run_id,
            **task.adapter_config(),
        )

    def export(self, job: "Job") -> None:
        """Writes the SavedModel."""
        plan = job.plan
        config = plan.saved.config if plan.saved else self.description(job)
        export_task(plan.places.export_dir, job.model, config, plan.base.vocabulary)
        print(f"SavedModel: {plan.places.export_dir}", flush=True)
