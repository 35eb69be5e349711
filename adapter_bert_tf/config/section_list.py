"""The sections of a configuration, in the order of the page of settings."""

import dataclasses

from adapter_bert_tf.config.sections.command import (
    ActionsConfig,
    DeviceConfig,
    OutputConfig,
    SweepsConfig,
)
from adapter_bert_tf.config.sections.data import DataConfig, QuestionsConfig, TableConfig
from adapter_bert_tf.config.sections.model import BaseConfig, MethodConfig
from adapter_bert_tf.config.sections.plain_text import PlainTextConfig
from adapter_bert_tf.config.sections.tagging import TaggingConfig
from adapter_bert_tf.config.sections.training import EvaluationConfig, TrainingConfig


@dataclasses.dataclass(frozen=True)
class Sections:
    """All sections; settings of other commands have their defaults."""

    actions: ActionsConfig = dataclasses.field(default_factory=ActionsConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    table: TableConfig = dataclasses.field(default_factory=TableConfig)
    questions: QuestionsConfig = dataclasses.field(default_factory=QuestionsConfig)
    tagging: TaggingConfig = dataclasses.field(default_factory=TaggingConfig)
    plain_text: PlainTextConfig = dataclasses.field(default_factory=PlainTextConfig)
    base: BaseConfig = dataclasses.field(default_factory=BaseConfig)
    method: MethodConfig = dataclasses.field(default_factory=MethodConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    output: OutputConfig = dataclasses.field(default_factory=OutputConfig)
    device: DeviceConfig = dataclasses.field(default_factory=DeviceConfig)
    sweeps: SweepsConfig = dataclasses.field(default_factory=SweepsConfig)


SECTIONS: dict[str, type] = {
    field.name: field.default_factory  # type: ignore[misc]
    for field in dataclasses.fields(Sections)
}
