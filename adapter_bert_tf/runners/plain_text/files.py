"""The text files that the settings name; without TensorFlow."""

import os

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.file_sets import split_paths
from adapter_bert_tf.data.plain_text.files import find_files, read_texts
from adapter_bert_tf.errors import Conflict, Missing, error_context
from adapter_bert_tf.retry import is_remote


def text_files(config: RunConfig) -> list[str]:
    """Returns the files of `--text_files`. Raises `InputError` if there are none."""
    return _found(config, "text_files", config.plain_text.text_files)


def dev_files(config: RunConfig) -> list[str]:
    """Returns the files of `--dev_files`; none if they are not given."""
    given = config.plain_text.dev_files
    return _found(config, "dev_files", given) if given else []


def uses_text_files(config: RunConfig) -> bool:
    """Whether the run reads `--text_files`, to train or for its dev set."""
    return config.actions.do_train or not config.plain_text.dev_files


def check_files(config: RunConfig) -> None:
    """Requires the local files of a run and the first text of each, without TensorFlow.

    The others are checked when they are read. Raises `InputError`.
    """
    plain_text = config.plain_text
    require_output_outside(config)
    if config.device.strategy == "tpu":  # `paths.check` explains that its paths must be remote.
        return
    value = plain_text.text_files if uses_text_files(config) else plain_text.dev_files
    if any(map(is_remote, split_paths(value or ""))):
        return
    files = text_files(config) if uses_text_files(config) else []
    for path in (*files, *dev_files(config)):
        next(read_texts([path], plain_text.text_unit))


def require_output_outside(config: RunConfig) -> None:
    """Raises `Conflict` if a run would read its own results as text the next time."""
    out, plain_text = f"{storage.real(config.output.folder)}/", config.plain_text
    for name, value in (("text_files", plain_text.text_files), ("dev_files", plain_text.dev_files)):
        for path in split_paths(value or ""):
            if storage.isdir(path) and out.startswith(f"{storage.real(path).rstrip('/')}/"):
                raise Conflict(
                    f"--output_dir={config.output.folder} is at or in --{name}={path}, all of "
                    "whose .txt files are read. Choose separate folders."
                )


def _found(config: RunConfig, name: str, value: str | None) -> list[str]:
    paths = split_paths(value or "")
    if not paths:
        raise Missing(f"--{name} is missing: text files, folders, or patterns such as '*.txt.gz'.")
    with error_context(f"--{name}"):
        return find_files(paths)


def adapter_name(config: RunConfig) -> str:
    """Returns the name of the text in the adapter: as given, or that of the first path."""
    plain_text = config.plain_text
    first = next(iter(split_paths(plain_text.text_files or plain_text.dev_files or "")), "")
    stem = os.path.basename(first.rstrip("/")).split(".")[0].strip("*?[]-_ ")
    return config.data.adapter_name or stem or "text"
