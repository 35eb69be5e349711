"""Builds and writes the report page of an output folder."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import NotFound, Occupied
from adapter_bert_tf.report import curves, evaluation, folder, pictures, run_record, sweeps
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.report_blocks import Block, Note, Section, format_number
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.tasks import OWN

FILE = "report.html"
MAX_TILES = 8
# Every report has this signature, also those of earlier versions.
SIGNATURE, MAX_HEAD = b"default-src 'none'; style-src 'unsafe-inline'; img-src data:", 1 << 12
BlockMaker = Callable[[], list[Block]]


def write(path: str) -> str:
    """Writes the page into an output folder, atomically; returns its path. Raises `InputError`."""
    target = os.path.join(path, FILE)
    page = build(path)
    _require_writable(target)
    storage.write_text(target, page)
    return target


def run(parsed: Any, _: str) -> None:
    """Runs `analyze report`: writes the page and prints its path. Raises `InputError`."""
    print(f"Report: {write(parsed.output_dir)}")


def _require_writable(target: str) -> None:
    """Raises `InputError` if something else than an earlier report exists at `target`."""
    obstacle = ""
    if storage.isdir(target):
        obstacle = "a folder"
    elif storage.is_link(target):
        obstacle = "a link"
    elif storage.exists(target) and not is_report(target):
        obstacle = "not a report of this program"
    if obstacle:
        raise Occupied(f"{target} is {obstacle}, and the report is written there. Move it away.")


def is_report(target: str) -> bool:
    """Whether a path is a report page, itself and not by a link."""
    if storage.is_link(target) or not storage.exists(target):
        return False
    return SIGNATURE in storage.read_bytes(target, MAX_HEAD)


def build(path: str) -> str:
    """Builds the page as HTML, reproducibly from the files. Raises as `write`."""
    contents = folder.read(path)
    if not (contents.record or contents.runs or contents.steps or pictures.analyses_in(contents)):
        damage = f" {contents.damaged[0]}" if contents.damaged else ""
        raise NotFound(
            f"{path} has nothing to report: no run.json, no metrics, and no figure of an "
            f"analysis.{damage} Give the --output_dir of a run."
        )
    sections = _sections(contents)
    if contents.damaged:
        notes = [Note(sentence) for sentence in dict.fromkeys(contents.damaged)]
        sections.append(Section("Damaged files", notes))
    tiles = _make_safely(contents, "run.json", lambda: _tiles(contents))
    return _render(_title(contents), tiles, sections)


def _sections(contents: Contents) -> list[Section]:
    sections: list[Section] = []

    def add(title: str, source: str, *makers: BlockMaker) -> None:
        blocks = [block for part in makers for block in _make_safely(contents, source, part)]
        if blocks:
            sections.append(Section(title, blocks))

    add("Results", "run.json", lambda: run_record.later_results(contents))
    if contents.runs:
        tables = (sweeps.ranking, sweeps.spread, sweeps.scores_by_value, sweeps.runs_table)
        add("Runs", "sweep.csv", *(functools.partial(make, contents) for make in tables))
    add("Model and settings", "run.json", lambda: run_record.blocks(contents))
    add("Training", "metrics.jsonl", lambda: curves.blocks(contents))
    for key in evaluation.keys(contents):
        title, makers = f"Evaluation: {evaluation.title(key)}", evaluation.parts(contents, key)
        add(title, "eval_details or eval_classes", *makers)
    for name in pictures.analyses_in(contents):
        make = functools.partial(pictures.blocks, contents, name)
        add(pictures.ANALYSES[name], name, make)
    add("Reproduction", "run.json", lambda: run_record.reproduction(contents))
    return sections


def _make_safely(contents: Contents, source: str, maker: Callable[[], Any]) -> Any:
    """Calls `maker`; if its file is damaged, returns nothing and adds a note to the page's end."""
    try:
        return maker()
    except folder.READ_ERRORS as error:
        message = preview(str(error), 100)
        contents.damaged.append(
            f"{source} is damaged, and a part of the page that needs it is not shown "
            f"({type(error).__name__}: {message})."
        )
        return []


def _title(contents: Contents) -> str:
    flags = contents.flags
    name = _task_name(flags) or os.path.basename(os.path.abspath(contents.folder)) or "Report"
    runs = f": {len(contents.runs)} runs" if contents.runs else ""
    tuning = f", {flags['tuning']}" if flags.get("tuning") else ""
    return f"{preview(str(name), 80)[1:-1]}{tuning}{runs}"


def _task_name(flags: Mapping[str, Any]) -> str:
    """The task of a run; for own data the name of its adapter; "" if there is none."""
    name = str(flags.get("task_name") or ("SQuAD" if "predict_file" in flags else ""))
    if name and name.lower() != OWN:
        return name
    data, out = (str(flags.get(n) or "").rstrip("/") for n in ("data_dir", "output_dir"))
    # The tables of `abt.train` are in the output folder, under a digest.
    own = os.path.basename(out if out and os.path.dirname(data) == out else data)
    return str(flags.get("adapter_name") or own or name)


def _tiles(contents: Contents) -> list[tuple[str, str, str]]:
    """Returns the main numbers of the page: name, value, and a range or ""."""
    results = contents.results or contents.record.get("eval") or {}
    selected = [name for name in contents.chosen_by if name in results]
    order = dict.fromkeys([*selected, *(n for n in results if not n.endswith(("_min", "_max")))])
    names = [name for name in order if name != "global_step"]
    tiles = [_tile(results, name) for name in names[:MAX_TILES]]
    if share := run_record.trained_proportion(contents):
        tiles.append(("of the parameters trained", f"{share:.2%}", ""))
    if contents.record.get("examples_per_second"):
        tiles.append(("examples/s", format_number(contents.record["examples_per_second"], 1), ""))
    return tiles


def _tile(results: dict[str, float], name: str) -> tuple[str, str, str]:
    low, high = results.get(f"{name}_min"), results.get(f"{name}_max")
    is_range = low is not None and high is not None
    bounds = f"{format_number(low)} to {format_number(high)}" if is_range else ""
    label = f"dev {name.removeprefix('eval_').replace('_', ' ')}"
    return label, format_number(results[name]), bounds


def _render(title: str, tiles: Sequence[tuple[str, str, str]], sections: Sequence[Section]) -> str:
    import jinja2
    from markupsafe import Markup

    def safe(value: Any) -> Any:
        """Escapes control characters; Jinja then escapes HTML."""
        is_plain = isinstance(value, str) and not isinstance(value, Markup)
        return printable(value, keep="\n\t") if is_plain else value

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("adapter_bert_tf.report", "templates"),
        autoescape=True,
        finalize=safe,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style = Markup(environment.loader.get_source(environment, "report.css")[0])  # type: ignore[union-attr]
    return environment.get_template("report.html").render(
        title=title, tiles=tiles, sections=sections, style=style
    )
