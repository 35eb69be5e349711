"""The page of an output folder: its sections, put together and written."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.report import curves, evaluation, folder, pictures, repeat, sweeps, trained
from adapter_bert_tf.report.blocks import Block, Note, Section, number
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.sanitize import preview, printable

FILE = "report.html"
MOST_TILES = 8
# By this a page is known as ours; those of earlier versions have it too.
OURS, LONGEST_HEAD = b"default-src 'none'; style-src 'unsafe-inline'; img-src data:", 1 << 12
Part = Callable[[], list[Block]]


def write(path: str) -> str:
    """Writes the page into an output folder, whole or not at all; returns its path.

    Args:
      path: of the folder, local or gs://.

    Raises:
      InputError: when there is no such folder, or nothing in it to show.
    """
    target = os.path.join(path, FILE)
    page = build(path)
    _require_place(target)
    storage.write_text(target, page)
    return target


def _require_place(target: str) -> None:
    """A report may be written where nothing is, or an earlier one. Raises `InputError`."""
    what = "a folder" if storage.isdir(target) else "a link" if storage.is_link(target) else None
    if what is None and storage.exists(target) and not is_ours(target):
        what = "no report of ours"
    if what:
        raise InputError(f"{target} is {what}, and the report is a file there. Move it away.")


def is_ours(target: str) -> bool:
    """Whether a file is such a page."""
    return OURS in storage.read_bytes(target, LONGEST_HEAD)


def build(path: str) -> str:
    """The page of an output folder as HTML; of the same files the same text. Raises as `write`."""
    contents = folder.read(path)
    if not (contents.record or contents.runs or contents.steps or pictures.named(contents)):
        said = f" {contents.damaged[0]}" if contents.damaged else ""
        raise InputError(
            f"{path} holds nothing to report: no run.json, no metrics, and no figure of an "
            f"analysis.{said} Give the --output_dir of a run."
        )
    sections = _sections(contents)
    if contents.damaged:
        notes = [Note(sentence) for sentence in dict.fromkeys(contents.damaged)]
        sections.append(Section("Left out", notes))
    return _rendered(_title(contents), _guarded(contents, "run.json", lambda: _tiles(contents)),
                     sections)  # fmt: skip


def _sections(contents: Contents) -> list[Section]:
    parts: list[tuple[str, str, Sequence[Part]]] = []
    if contents.runs:
        parts.append(("Runs", "sweep.csv", [
            functools.partial(make, contents)
            for make in (sweeps.ranking, sweeps.spread, sweeps.over_each, sweeps.runs)
        ]))  # fmt: skip
    parts.append(("What was trained", "run.json", [lambda: trained.blocks(contents)]))
    parts.append(("Training", "metrics.jsonl", [lambda: curves.blocks(contents)]))
    for key in evaluation.keys(contents):
        source = "eval_details or eval_classes"
        parts.append(
            (f"Evaluation: {evaluation.title(key)}", source, evaluation.parts(contents, key))
        )
    for name in pictures.named(contents):
        make = functools.partial(pictures.blocks, contents, name)
        parts.append((pictures.ANALYSES[name], name, [make]))
    parts.append(("To repeat it", "run.json", [lambda: repeat.blocks(contents)]))
    made = [
        Section(title, [block for part in of for block in _guarded(contents, source, part)])
        for title, source, of in parts
    ]
    return [section for section in made if section.blocks]


def _guarded(contents: Contents, source: str, part: Callable[[], Any]) -> Any:
    """What a part says; nothing, and a sentence at the page's end, where its file is damaged."""
    try:
        return part()
    except folder.DAMAGE as error:
        said = preview(str(error), 100)
        contents.damaged.append(
            f"A part that is drawn from {source} is left out: it is damaged "
            f"({type(error).__name__}: {said})."
        )
        return []


def _title(contents: Contents) -> str:
    flags = contents.flags
    name = flags.get("task_name") or ("SQuAD" if "predict_file" in flags else "")
    if not name:
        name = os.path.basename(os.path.abspath(contents.folder)) or "Report"
    runs = f": {len(contents.runs)} runs" if contents.runs else ""
    tuning = f", {flags['tuning']}" if flags.get("tuning") else ""
    return f"{preview(str(name), 80)[1:-1]}{tuning}{runs}"


def _tiles(contents: Contents) -> list[tuple[str, str, str]]:
    """The few numbers that a page begins with: name, value, and a range or ""."""
    results = contents.results or contents.record.get("eval") or {}
    first = [name for name in contents.chosen_by if name in results]
    order = dict.fromkeys([*first, *(n for n in results if not n.endswith(("_min", "_max")))])
    names = [name for name in order if name != "global_step"]
    tiles = [(_called(name), number(results[name]), _range(results, name)) for name in names]
    tiles = tiles[:MOST_TILES]
    if share := trained.share_trained(contents):
        tiles.append(("of the parameters trained", f"{share:.2%}", ""))
    if "examples_per_second" in contents.record:
        tiles.append(("examples/s", number(contents.record["examples_per_second"], 1), ""))
    return tiles


def _called(name: str) -> str:
    return f"dev {name.removeprefix('eval_').replace('_', ' ')}"


def _range(results: dict[str, float], name: str) -> str:
    """The range of a result of several runs."""
    low, high = results.get(f"{name}_min"), results.get(f"{name}_max")
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def _rendered(
    title: str, tiles: Sequence[tuple[str, str, str]], sections: Sequence[Section]
) -> str:
    import jinja2
    from markupsafe import Markup

    def safe(value: Any) -> Any:
        """Texts without what a page cannot hold; Jinja escapes them after that."""
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return printable(value, keep="\n\t") if is_text else value

    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("adapter_bert_tf.report", "templates"),
        autoescape=True,
        finalize=safe,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style = Markup(pages.loader.get_source(pages, "report.css")[0])  # type: ignore[union-attr]
    return pages.get_template("report.html").render(
        title=title, tiles=tiles, sections=sections, style=style
    )
