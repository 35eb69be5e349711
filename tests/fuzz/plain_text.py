"""Text files, and the packed sequences that are kept of them."""

import functools
import gzip
import json
import os
import pathlib
import tempfile

import numpy as np
from hypothesis import strategies as st

from adapter_bert_tf.data import file_sets
from adapter_bert_tf.data.plain_text import files, packed_file
from adapter_bert_tf.data.plain_text.packing import Counts
from tests.fuzz import values
from tests.fuzz.cases import Case

NAMES = ("a.txt", "a.txt.gz", "below/b.txt", "c.md")
WHITE = b" \t\n\r\x0b\x0c"  # What `bytes.strip` removes.


@st.composite
def cases(draw):
    """A folder of texts, and the paths that are to be read."""
    end = draw(st.sampled_from(("\n", "\r\n", "\r", "\n\n")))
    found = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        line = st.sampled_from(("the cat", " sat ", "\u00fc", ""))
        line = line | values.texts() if draw(st.integers(0, 2)) == 0 else line
        text = end.join(draw(st.lists(line, min_size=1, max_size=5)))
        content = text.encode("utf-8", draw(st.sampled_from(("replace", "surrogatepass"))))
        content = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
        if draw(st.integers(0, 4)) == 0:
            content = draw(values.edited(content))
        found[name] = content
    known = st.sampled_from(sorted(found))
    odd = st.sampled_from((*NAMES, "", "*.txt", "*", "none", "["))
    paths = draw(st.lists(odd if draw(st.integers(0, 3)) == 0 else known, min_size=1))
    return Case(found, {"paths": paths, "unit": draw(st.sampled_from(("line", "paragraph")))})


def read(folder, settings):
    """Lines are those of the file; paragraphs have the same words."""
    given = [str(folder / path) for path in settings["paths"]]
    paths = files.find_files(file_sets.split_paths(",".join(given)))
    assert len(set(paths)) == len(paths) and len(file_sets.digest(paths)) == 64
    texts = list(files.read_texts(paths, settings["unit"]))
    assert texts and all(text == text.strip(WHITE) != b"" for text in texts)
    lines = list(files.read_texts(paths, "line"))
    if settings["unit"] == "line":
        assert texts == lines
    assert b" ".join(texts) == b" ".join(lines)


def packed(counts):
    """Two sequences of four positions and one of three."""
    counts.texts, counts.pieces = 2, 5
    yield np.array([[2, 5, 6, 3], [2, 7, 8, 3]], np.int32)
    yield np.array([[2, 9, 3]], np.int32)


@st.composite
def caches(draw):
    """A folder of packed sequences, whole or damaged, with a damaged note of what is whole."""
    note_path, whole = _whole_cache()
    note = values.changed(json.loads(whole[note_path])) | values.json_values()
    kept = whole | {note_path: draw(values.json_bytes(note))}
    if draw(st.booleans()):
        (damaged,) = whole.keys() - {note_path}
        kept |= {damaged: draw(st.binary(max_size=30))}
    return Case({note_path: None} if draw(st.integers(0, 5)) == 0 else kept)


def without_counts():
    """A whole folder whose note has nothing where it counts texts and pieces."""
    note_path, whole = _whole_cache()
    note = json.loads(whole[note_path]) | {"counts": None}
    return Case(whole | {note_path: json.dumps(note).encode()})


@functools.cache
def _whole_cache():
    """Path of the note, and the contents of both files, by path."""
    with tempfile.TemporaryDirectory() as folder:
        _kept(folder)
        found = {
            os.path.relpath(path, folder): path.read_bytes()
            for path in pathlib.Path(folder).rglob("*.*")
            if path.is_file() and not path.name.startswith(".")
        }
    (note,) = (path for path in found if path.endswith(packed_file.DONE_FILE))
    return note, {path: found[path] for path in found if path.endswith((".sequences", ".json"))}


def _kept(folder):
    return packed_file.cached_sequences(str(folder), {"text": "x"}, 50, 4, packed)


def cache(folder, settings):
    """Whatever was there, the sequences are whole afterwards, or it is refused."""
    found = _kept(folder)
    assert found.count == 3 and found.last_length == 3
    assert isinstance(found.counts, Counts)
    assert found.read(np.arange(3)).tolist() == [[2, 5, 6, 3], [2, 7, 8, 3], [2, 9, 3, 0]]
