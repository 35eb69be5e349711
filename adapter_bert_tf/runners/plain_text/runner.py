"""Runs of `run_adapt.py`: masked-language-model training on plain text."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.task_encoder import TaskEncoder
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.command import ActionsConfig
from adapter_bert_tf.data.host_shard import HostShard
from adapter_bert_tf.data.plain_text.batches import eval_batches, train_batches
from adapter_bert_tf.data.plain_text.masking import POSITIONS, TARGETS, WEIGHTS
from adapter_bert_tf.heads.task_model import EncoderModel
from adapter_bert_tf.run.plan import Job, Plan
from adapter_bert_tf.run.task_data import TaskData
from adapter_bert_tf.run.task_runner import InputBatches, TaskRunner
from adapter_bert_tf.runners.plain_text import task_data
from adapter_bert_tf.runners.plain_text.files import adapter_name
from adapter_bert_tf.runners.plain_text.task_data import PlainTextData
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.progress import RowProgress


class PlainTextRunner(TaskRunner):
    """Masked words in plain text."""

    uses_pooler = False

    def check(self, config: RunConfig, saved: SavedAdapter | None) -> None:
        if saved:
            task_data.check_saved(saved)

    def read(
        self, config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None
    ) -> tuple[PlainTextData, ...]:
        return (task_data.read(config, vocabulary, saved),)

    def new_model(self, plan: Plan, encoder: TaskEncoder | AdapterBertEncoder) -> EncoderModel:
        """Returns the model with the head of the base's pretraining, if its files have it."""
        model = super().new_model(plan, encoder)
        variables = model.named_variables()
        for name, value in plan.base.pretraining_head.items():
            variables[name].assign(value)
        return model

    def report(self, job: Job) -> str:
        """Adds where the head comes from, unless that is the adapter of `--init_from`."""
        plan, table = job.plan, super().report(job)
        initial = plan.initial_adapter
        if not plan.actions.do_train or (initial and initial.has_head_of(plan.only_task)):
            return table
        origin = "fresh, as the base's files have none."
        if plan.base.pretraining_head:
            origin = "the one that the base was pretrained with."
        return f"{table}\nThe head that predicts words is {origin}"

    def train_batches(self, plan: Plan, start: int, share: HostShard) -> tf.data.Dataset:
        data, batches = data_of(plan), plan.batches
        assert data.training
        return train_batches(
            data.training,
            data.masking,
            batches.train,
            plan.training.steps,
            batches.seed,
            start,
            share,
        )

    def finish_training(self, job: Job) -> None:
        return

    def is_evaluated(self, actions: ActionsConfig, tasks: Sequence[TaskData]) -> bool:
        (data,) = cast(Sequence[PlainTextData], tasks)
        return data.dev_file is not None

    def evaluate(self, job: Job) -> dict[str, float]:
        """Returns loss in nats, perplexity and accuracy of the masked pieces of the dev set."""
        plan = job.plan
        data = data_of(plan)
        rows, size = data.dev_rows, plan.limit_batch(plan.batches.evaluate, len(data.dev_rows))
        assert data.dev_file
        file = data.dev_file
        sums = np.zeros(3)
        progress = RowProgress("dev sequences", len(rows))
        for part in inference.predict(
            job.model, lambda share: eval_batches(file, rows, data.masking, size, share)
        ):
            sums += part.sum(0, dtype=np.float64)
            progress.add(len(part))
        results = data.task_type.evaluate(*sums.tolist())
        return {f"eval_{name}": value for name, value in results.items()}

    def table_name(self, config: RunConfig) -> str:
        return adapter_name(config)

    def dev_batches(self, plan: Plan) -> InputBatches:
        data, size = data_of(plan), plan.batches.evaluate
        rows, file = data.dev_rows, data.dev_file
        assert file
        size = plan.limit_batch(size, len(rows))
        for number, batch in enumerate(eval_batches(file, rows, data.masking, size)):
            inputs = {n: x for n, x in batch.items() if n not in (POSITIONS, TARGETS, WEIGHTS)}
            yield inputs, min(size, len(rows) - number * size)

    def predict(self, job: Job) -> None:
        """Writes nothing: the command has no `--do_predict`."""

    def output_files(self, tasks: Sequence[TaskData]) -> list[str]:
        return []


def data_of(plan: Plan) -> PlainTextData:
    """Returns the data of a plan as this runner reads it."""
    return cast(PlainTextData, plan.only_task)
