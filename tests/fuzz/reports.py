"""Output folders of any content, from which a page is drawn: what is damaged is left out."""

import functools
import html.parser
import json
import pathlib
import tempfile

from hypothesis import strategies as st

from adapter_bert_tf import report
from tests.fuzz import values
from tests.fuzz.cases import Case, Link
from tests.report import folders

LINKS = (Link("../outside/below"), Link("../outside/below/mine"), Link("nowhere"))
MAKERS = (
    *(folders.classes_run, folders.squad_run, folders.sweep),
    lambda folder: folders.sets(folders.write(folder)),
    lambda folder: folders.scores(folders.write(folder)),
)
PICTURES = {"compare.svg": b"<svg></svg>", "compare.csv": b"a,b\n1,2.123456\n"}


@functools.cache
def sound():
    """The files that each maker leaves in a folder, without those below it."""
    found = []
    with tempfile.TemporaryDirectory() as above:
        for i, make in enumerate(MAKERS):
            folder = pathlib.Path(above, str(i))
            make(folder)
            found.append({path.name: path.read_bytes() for path in folder.iterdir()
                          if path.is_file()} | PICTURES)  # fmt: skip
    return found


@st.composite
def cases(draw):
    """A folder as a run leaves it, with a few files changed, damaged, gone, or something else."""
    files = dict(draw(st.sampled_from(sound())))
    for name in draw(st.sets(st.sampled_from(sorted(files)), min_size=1, max_size=3)):
        files[name] = draw(_content(name, files[name]))
    return Case({name: content for name, content in files.items() if content != b"gone"})


def _content(name, content):
    odd = st.sampled_from((None, b"gone", *LINKS)) | st.binary(max_size=30)
    if name.endswith(".json"):
        changed = values.json_bytes(values.changed(json.loads(content)))
    elif name.endswith(".jsonl"):
        rows = [json.loads(line) for line in content.splitlines()]
        changed = st.lists(values.json_bytes(values.changed(rows[-1])), max_size=3).map(b"\n".join)
    else:
        changed = _cells(content.decode("utf-8", "replace"))
    return changed | changed | odd


@st.composite
def _cells(draw, text):
    """A table, or lines, with one word in another's place."""
    words = text.replace("\t", " ").replace(",", " ").split() or [""]
    old = draw(st.sampled_from(words))
    return text.replace(old, draw(values.texts()), 1).encode("utf-8", "replace")


class Tags(html.parser.HTMLParser):
    """Sees to it that a page has no script, and that what is opened is closed."""

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "object", "embed"), tag
        assert not [name for name, _ in attrs if name.startswith("on")], attrs


def draw(folder, settings):
    """The page of a folder; anything but `InputError` breaks the property."""
    page = report.build(str(folder))
    assert page.encode("utf-8") and len(page) < 3_000_000
    Tags().feed(page)
