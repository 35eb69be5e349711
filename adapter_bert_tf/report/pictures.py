"""What the analyses left in a folder: their figures, and their tables."""

import base64
import csv
import html
import io
import os
import re

from adapter_bert_tf import storage
from adapter_bert_tf.report.blocks import Block, Note, Picture, Table, number
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.sanitize import truncate

# Names of the files, without their ends, and what they show.
ANALYSES = {
    "compare": "Runs compared",
    "ablation": "Without the adapters of a span of layers",
    "init_scale": "Results by the scale of the adapters' first weights",
    "size": "Results by the size of the adapters",
    "size_map": "Results by the size of the adapters, several tasks",
    "variants": "Variants of the adapter",
    "influence": "Influence of the layers",
    "fusion_attention": "Whom the fusion listens to",
    "fusion_map": "Whom the fusions listen to",
    "task_embeddings": "Embeddings of the tasks",
    "task_similarity": "How alike the tasks are (cosine)",
}
# Further tables of an analysis.
TABLES = {"compare": ("compare_pairs", "compare_examples")}
LARGEST = 400_000  # Bytes of a picture in the page.
MOST_ROWS, MOST_COLUMNS = 25, 12
LONG, LONGEST = 40, 300  # Characters: of a cell that is a text, and of those that are shown.
COMMAND = re.compile(r"<dc:description>(.*?)</dc:description>", re.S)


def named(contents: Contents) -> list[str]:
    """Names of the analyses of which the folder has files."""
    ends = (".svg", ".png", ".csv")
    return [name for name in ANALYSES if any(f"{name}{end}" in contents.names for end in ends)]


def blocks(contents: Contents, name: str) -> list[Block]:
    """Figure and table of one analysis."""
    tables = [_table(contents, called) for called in (name, *TABLES.get(name, ()))]
    return [*_picture(contents, name), *(block for found in tables for block in found)]


def _picture(contents: Contents, name: str) -> list[Block]:
    svg, png = (_bytes(contents, f"{name}.{kind}") for kind in ("svg", "png"))
    said = COMMAND.search(svg.decode("utf-8", "replace")) if svg else None
    command = html.unescape(said[1]) if said else ""
    for kind, content in (("svg+xml", svg), ("png", png)):
        if content and len(content) <= LARGEST:
            encoded = base64.b64encode(content).decode()
            return [Picture(f"data:image/{kind};base64,{encoded}", ANALYSES[name], command)]
    return [Note(f"{name}.png is too large for this page.")] if svg or png else []


def _bytes(contents: Contents, name: str) -> bytes:
    path = os.path.join(contents.folder, name)
    there = name in contents.names and storage.exists(path) and not storage.isdir(path)
    return bytes(storage.read_bytes(path, 4 * LARGEST)) if there else b""


def _table(contents: Contents, name: str) -> list[Block]:
    none: list[list[str]] = []
    rows = contents.read(f"{name}.csv", lambda text: list(csv.reader(io.StringIO(text))), none)
    if len(rows) < 2:
        return []
    header, *rest = [row[:MOST_COLUMNS] for row in rows]
    shown = [[_cell(cell) for cell in row] for row in rest[:MOST_ROWS]]
    more = f", {len(shown)} of {len(rest)} rows" if len(rest) > len(shown) else ""
    words = any(len(cell) > LONG for row in shown for cell in row)
    return [Table(header, shown, f"{name}.csv{more}", folded=True, words=words)]


def _cell(text: str) -> str:
    is_long = re.fullmatch(r"-?\d+\.\d{5,}(e-?\d+)?", text)
    return number(float(text)) if is_long else truncate(text, LONGEST)
