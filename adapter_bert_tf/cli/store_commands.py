"""Commands of `adapter-bert store`, some of which return an exit status."""

import argparse
import os
import re
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.importing import import_tensorflow
from adapter_bert_tf.config.messages import spell_for_command
from adapter_bert_tf.errors import InputError, NotFound, Unsupported
from adapter_bert_tf.interop import hub
from adapter_bert_tf.interop.adapter_bert import import_checkpoint
from adapter_bert_tf.interop.adapterhub_files.exporting import export_adapter
from adapter_bert_tf.interop.adapterhub_files.importing import import_adapter, is_adapterhub
from adapter_bert_tf.interop.base_folder import export_base
from adapter_bert_tf.interop.peft_files.exporting import export_peft
from adapter_bert_tf.interop.peft_files.importing import import_peft
from adapter_bert_tf.interop.peft_files.layout import is_peft
from adapter_bert_tf.output.atomic import TEMPORARY
from adapter_bert_tf.permissions import is_closed, require_open
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.base_match import base_source, check_base
from adapter_bert_tf.store.card import card, format_metric
from adapter_bert_tf.store.combining.combine import average
from adapter_bert_tf.store.contents import adapter_of, name_of, trained_size
from adapter_bert_tf.store.directory import (
    WEIGHTS,
    SavedAdapter,
    check_task_directories,
    extract_task,
    load_adapter,
    save_adapter,
)
from adapter_bert_tf.store.file_names import CONFIG, MEMBERS
from adapter_bert_tf.store.files import adapter_at, adapter_exists, read_config
from adapter_bert_tf.store.multitask import is_several, require_one_task

ROW = "{:<24}{:<20}{:>6}{:>12}{:>10}  {:<31} {}"


def list_adapters(parsed: argparse.Namespace) -> int:
    """Prints one line for each adapter in or below the folders."""
    paths = [path for folder in parsed.folders for path in find(folder)]
    print(ROW.format("task", "method", "size", "parameters", "kB", "result", "folder"))
    refused = 0
    for path in paths:
        if library := _library_of(path):
            print(printable(f"{path}: of the library `{library}`; `import` reads it"))
            continue
        try:
            print(printable(_row(path)))
        except InputError as error:
            refused += 1
            print(printable(f"{path}: refused. {error}"))
    print(f"{len(paths)} adapters{f', {refused} refused' if refused else ''}")
    return 1 if refused else 0


def _library_of(folder: str) -> str | None:
    """The other library that wrote a folder, if one did."""
    if is_adapterhub(folder):
        return "adapters"
    return "peft" if is_peft(folder) else None


def find(folder: str) -> list[str]:
    """Returns the adapter directories at or below a folder, and folders that cannot be read.

    Links to adapter directories count; links to other folders are not followed.
    """
    if adapter_exists(folder):
        return [folder]
    require_open(folder)
    if not storage.isdir(folder):
        raise NotFound(f"There is no folder {folder!r}.")
    return sorted(
        path
        for path in {
            os.path.join(a, name) for a, names, _ in storage.walk(folder) for name in names
        }
        if TEMPORARY not in path[len(folder) :]
        and (_is_unreadable(path) or (adapter_exists(path) and not _is_member(path)))
    )


def _is_unreadable(path: str) -> bool:
    """Whether this user may not list a local folder, which is not a link."""
    return not storage.is_remote(path) and not storage.is_link(path) and is_closed(path)


def _is_member(path: str) -> bool:
    parent, name = os.path.split(os.path.dirname(path))
    return name == MEMBERS and adapter_exists(parent)


def _row(path: str) -> str:
    saved = load_adapter(path)
    config, metric = saved.config, saved.config["metric"]
    name, task = name_of(config), config["task"]
    title = task if name == task else f"{name}: {task}"
    result = "-"
    if metric:
        result = f"{metric['name']} {format_metric(metric['value'])} ({metric['split']})"
    kilobytes = storage.stat(os.path.join(path, WEIGHTS)).length // 1024
    return ROW.format(
        printable(title)[:23],
        config["method"],
        _size_text(config),
        f"{trained_size(config):,}",
        f"{kilobytes:,}",
        printable(result),
        path,
    )


def _size_text(config: Mapping[str, Any]) -> str:
    """The size of the method, or the smallest and the largest one."""
    adapter = adapter_of(config)
    sizes = adapter.sizes(config["base"]["num_layers"]) if adapter else ()
    return "-".join(map(str, sorted({min(sizes), max(sizes)}))) if sizes else "-"


def show_adapters(parsed: argparse.Namespace) -> None:
    """Prints the card of each adapter, and its weights by group."""
    for folder in parsed.folders:
        saved = load_adapter(folder)
        print(card(saved.config))
        groups: dict[str, list[int]] = {}
        for name in sorted(saved.weights, key=_sort_key):
            group = "LayerNorms" if "/LayerNorm/" in name else name.rsplit("/", 1)[0]
            groups.setdefault(group, []).append(saved.weights[name].size)
        for group, sizes in groups.items():
            print(f"  {group:<40}{len(sizes):>4} arrays{sum(sizes):>12,} parameters")


def _sort_key(name: str) -> list[int | str]:
    """Returns a key that sorts layer 10 after layer 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def verify_adapters(parsed: argparse.Namespace) -> int:
    """Reads all files, and compares them with `--base_model` if given."""
    base = load_base(parsed.base_model) if parsed.base_model else None
    refused = 0
    for folder in parsed.folders:
        try:
            if _library_of(folder):
                raise Unsupported("It belongs to another library; `import` reads it.")
            saved = load_adapter(folder)
            check_task_directories(adapter_at(folder), saved)
            if base:
                check_base(saved.config, base.for_adapter(saved.config["base"]).fingerprint())
            print(printable(f"ok       {folder}"))
        except InputError as error:
            refused += 1
            print(printable(f"refused  {folder}: {spell_for_command(error, vars(parsed))}"))
    return 1 if refused else 0


def average_adapters(parsed: argparse.Namespace) -> None:
    """Writes one adapter made from the weights of adapters of one shape."""
    require_free(parsed.output)
    if len({storage.real(folder) for folder in parsed.folders}) < len(parsed.folders):
        raise InputError(f"Name each adapter of an average once. Received: {parsed.folders}")
    adapters = [load_adapter(folder) for folder in parsed.folders]
    options = (parsed.method, parsed.shares, parsed.density, parsed.seed)
    _write(average(adapters, *options), parsed)


def generate_adapters(parsed: argparse.Namespace) -> None:
    """Writes an ordinary adapter for one task of an adapter of several."""
    require_free(parsed.output)
    (folder,) = parsed.folders
    saved = load_adapter(folder)
    if not is_several(saved.config):
        raise InputError(f"{folder!r} is the adapter of one task. Use it as it is.")
    _write(extract_task(saved, parsed.task), parsed)


def import_adapters(parsed: argparse.Namespace) -> None:
    """Writes another library's adapter as an adapter directory."""
    require_free(parsed.output)
    (source,) = parsed.folders
    if not storage.exists(source) and not storage.exists(f"{source}.index"):
        raise NotFound(
            f"There is no {source!r}. Name a folder of AdapterHub's or PEFT's files, or a "
            "checkpoint of adapter-bert without its ending: .../model.ckpt-1000."
        )
    _require_foreign(source)
    base = load_base(parsed.base_model)
    labels = [label for label in parsed.labels.split(",") if label]
    inputs = {"texts": parsed.texts}
    if parsed.max_seq_length is not None:
        inputs["max_seq_length"] = parsed.max_seq_length
    is_folder = storage.isdir(source)
    if is_folder and is_peft(source):
        saved = import_peft(source, base, parsed.task, labels, **inputs)
    elif is_folder and is_adapterhub(source):
        saved = import_adapter(source, base, parsed.task, labels, **inputs)
    elif parsed.task and (not is_folder or storage.exists(os.path.join(source, "checkpoint"))):
        saved = import_checkpoint(source, base, parsed.task, labels, **inputs)
    else:
        raise NotFound(
            f"{source!r} has no head_config.json, which AdapterHub's files include, and no "
            "adapter_config.json of PEFT. For a checkpoint of adapter-bert, name it without its "
            "ending, .../model.ckpt-1000, and add --task=NAME and --labels=A,B,..."
        )
    _write(saved, parsed)


def _require_foreign(folder: str) -> None:
    if not adapter_exists(folder):
        return
    try:
        read_config(os.path.join(folder, CONFIG))
    except InputError:
        return  # AdapterHub and PEFT have a file of that name, too.
    raise InputError(f"{folder!r} is an adapter of this package already. Use or copy it as it is.")


def _write(saved: SavedAdapter, parsed: argparse.Namespace) -> None:
    require_free(parsed.output)  # Another process may have written it in the meantime.
    save_adapter(parsed.output, saved.config, saved.weights, parsed.dtype, saved.members)
    print(f"Adapter of {name_of(saved.config)!r}: {parsed.output}")


def export_adapters(parsed: argparse.Namespace) -> None:
    """Writes an adapter directory as another library's files, or as the model of a runtime."""
    require_free(parsed.output)
    (folder,) = parsed.folders
    saved = load_adapter(folder)
    require_one_task(saved.config, folder)
    source = parsed.base_model or base_source(saved.config)
    # The weights of a base of random weights are those of the adapter.
    base = load_base(source, needs_weights=parsed.format != "base")
    base = base.for_adapter(saved.config["base"])
    if parsed.format == "base":
        export_base(saved, parsed.output, base)
        print(printable(f"Base: {parsed.output}"))
        return
    if parsed.format == "peft":
        export_peft(saved, parsed.output, base)
        print(f"Files for PEFT: {parsed.output}")
        return
    if parsed.format != "adapterhub":
        import_tensorflow("adapter_bert_tf.interop.portable_models")
        from adapter_bert_tf.interop.portable_models import export_model

        outputs = export_model(saved, parsed.output, base, parsed.format)
        print(printable(f"Model of {name_of(saved.config)!r}: {parsed.output}. Outputs: {outputs}"))
        return
    name = export_adapter(saved, parsed.output, base)
    print(f"Files for AdapterHub: {parsed.output}")
    if name != name_of(saved.config):
        print(printable(f"The adapter is {name!r} there; its name is not possible in PyTorch."))


def push_adapters(parsed: argparse.Namespace) -> None:
    """Uploads an adapter directory to the Hugging Face Hub."""
    (folder,) = parsed.folders
    print(f"Pushed: {hub.push(folder, parsed.name, parsed.private)}")


def pull_adapters(parsed: argparse.Namespace) -> None:
    """Downloads an adapter directory from the Hugging Face Hub."""
    revision = hub.pull(parsed.name, parsed.output)
    print(f"Adapter {parsed.name!r}, revision {revision}: {parsed.output}")
