"""Figures and tables of analyses in an output folder."""

import base64
import csv
import html
import io
import os
import re

from adapter_bert_tf import storage
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.report_blocks import Block, Note, Picture, Table, format_number
from adapter_bert_tf.sanitize import truncate

# File names without suffix, and titles.
ANALYSES = {
    "compare": "Comparison of runs",
    "ablation": "Ablation of the adapters of layer spans",
    "init_scale": "Results by the scale of the adapters' initial weights",
    "size": "Results by adapter size",
    "size_map": "Results by adapter size, several tasks",
    "variants": "Variants of the adapter",
    "influence": "Influence of the layers",
    "fusion_attention": "Attention of the fusion to its members",
    "fusion_map": "Attention of the fusions to their members",
    "task_embeddings": "Task embeddings",
    "task_similarity": "Task similarity (cosine)",
}
# Additional tables of an analysis.
TABLES = {"compare": ("compare_pairs", "compare_examples")}
MAX_PICTURE_BYTES = 400_000
MAX_ROWS, MAX_COLUMNS = 25, 12
LONG_TEXT, MAX_TEXT = 40, 300  # Characters of a cell.
COMMAND = re.compile(r"<dc:description>(.*?)</dc:description>", re.S)


def analyses_in(contents: Contents) -> list[str]:
    """Returns the names of the analyses with files in the folder."""
    suffixes = (".svg", ".png", ".csv")
    return [name for name in ANALYSES if any(f"{name}{end}" in contents.names for end in suffixes)]


def blocks(contents: Contents, name: str) -> list[Block]:
    """Makes the figure and the tables of one analysis."""
    tables = [_table(contents, table_name) for table_name in (name, *TABLES.get(name, ()))]
    return [*_picture(contents, name), *(block for table in tables for block in table)]


def _picture(contents: Contents, name: str) -> list[Block]:
    svg, png = (_bytes(contents, f"{name}.{kind}") for kind in ("svg", "png"))
    match = COMMAND.search(svg.decode("utf-8", "replace")) if svg else None
    command = html.unescape(match[1]) if match else ""
    for kind, content in (("svg+xml", svg), ("png", png)):
        if content and len(content) <= MAX_PICTURE_BYTES:
            encoded = base64.b64encode(content).decode()
            return [Picture(f"data:image/{kind};base64,{encoded}", ANALYSES[name], command)]
    return [Note(f"{name}.png is too large for this page.")] if svg or png else []


def _bytes(contents: Contents, name: str) -> bytes:
    path = os.path.join(contents.folder, name)
    exists = name in contents.names and storage.exists(path) and not storage.isdir(path)
    return bytes(storage.read_bytes(path, 4 * MAX_PICTURE_BYTES)) if exists else b""


def _table(contents: Contents, name: str) -> list[Block]:
    none: list[list[str]] = []
    rows = contents.read(f"{name}.csv", lambda text: list(csv.reader(io.StringIO(text))), none)
    if len(rows) < 2:
        return []
    header, *rest = [row[:MAX_COLUMNS] for row in rows]
    cells = [[_cell(cell) for cell in row] for row in rest[:MAX_ROWS]]
    more = f", {len(cells)} of {len(rest)} rows" if len(rest) > len(cells) else ""
    words = any(len(cell) > LONG_TEXT for row in cells for cell in row)
    return [Table(header, cells, f"{name}.csv{more}", folded=True, words=words)]


def _cell(text: str) -> str:
    is_long = re.fullmatch(r"-?\d+\.\d{5,}(e-?\d+)?", text)
    return format_number(float(text)) if is_long else truncate(text, MAX_TEXT)
