"""Files of tagged words: columns and JSON lines."""

import gzip
import json

from hypothesis import strategies as st

from adapter_bert_tf.data.tagging.schemes import entities, from_iob2, labels_of, transitions
from adapter_bert_tf.data.tagging.sentences import TagFormat, has_tags, read_lines, read_sentences
from adapter_bert_tf.data.tagging.tagged_files import check_labels, label_ids, read_tagged
from adapter_bert_tf.tasks.tag_metrics import by_type, evaluate
from tests.fuzz import values
from tests.fuzz.cases import Case

NAMES = ("a.conll", "a.tsv", "a.conll.gz", "a.jsonl")
SETS = (("O", "B-PER", "I-PER"), ("O", "B-a-b", "E-a-b", "S-x"), ("NOUN", "VERB"), ("B", "I", "O"))


@st.composite
def cases(draw):
    """Sound files of words in all schemes, and files of anything."""
    name = draw(st.sampled_from(NAMES))
    tags = st.sampled_from(draw(st.sampled_from(SETS)))
    if draw(st.integers(0, 5)) == 0:
        tags = tags | values.texts()
    word = st.tuples(st.sampled_from(("Rome", "in", "#")) | values.texts(), tags)
    sentences = draw(st.lists(st.lists(word, max_size=4), max_size=5))
    content = _objects(sentences) if name.endswith(".jsonl") else draw(_columns(sentences))
    content = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    if draw(st.integers(0, 5)) == 0:
        content = draw(values.edited(content))
    form = draw(_forms()) if draw(st.integers(0, 3)) == 0 else {"comments": draw(st.booleans())}
    return Case({name: content}, {"form": form, "name": name})


def _forms():
    """Strategy of what one may say of a file."""
    column = st.none() | st.sampled_from(("0", "1", "-1", "2", "tags", "9" * 5000)) | values.texts()
    return st.fixed_dictionaries(
        {
            "tag_column": column,
            "word_column": column,
            "separator": st.none() | st.sampled_from(("\t", " ", "\\t", "", "\n", "O")),
            "comments": st.booleans(),
            "encoding": st.just("utf-8") | st.sampled_from(("latin-1", "utf-16", "idna", "hex")),
        }
    )


@st.composite
def _columns(draw, sentences):
    between = draw(st.sampled_from(("\t", " ", "\tNN\t")))
    end = draw(st.sampled_from(("\n", "\r\n", "\r")))
    blank = draw(st.sampled_from(("", "\t", " ")))
    lines = [[between.join(word) for word in sentence] for sentence in sentences]
    return end.join([*(end.join([*rows, blank]) for rows in lines)]).encode("utf-8", "replace")


def _objects(sentences):
    objects = [
        {"tokens": [word for word, _ in words], "tags": [tag for _, tag in words]}
        for words in sentences
    ]
    return "\n".join(map(json.dumps, objects)).encode()


def read(folder, settings):
    """Reads, converts and scores; gold against gold is perfect, in the file's own scheme, too."""
    form, path = TagFormat(**settings["form"]), str(folder / settings["name"])
    untagged = list(read_sentences(path, form, tagged=False))
    if not path.endswith(".jsonl"):
        words = sum(line.cells is not None for line in read_lines(path, form))
        assert words == sum(len(sentence.words) for sentence in untagged)
    has_tags(path, form)
    tagged = read_tagged(path, form)
    assert tagged.words == [sentence.words for sentence in untagged]
    labels = labels_of(tagged.tags, tagged.scheme)
    check_labels(tagged, labels, "the file itself")
    ids, (start, between, _) = label_ids(tagged.tags, labels), transitions(labels, tagged.scheme)
    for row, tags in zip(ids, tagged.tags, strict=True):
        assert not row or (start[row[0]] and between[row[:-1], row[1:]].all())
        written = from_iob2(tags, tagged.scheme)
        assert tagged.scheme == "plain" or entities(written) == entities(tags)
    scores = evaluate(tagged.tags, tagged.tags, tagged.scheme)
    assert scores["accuracy"] == 1.0
    if tagged.scheme != "plain":
        found = by_type(tagged.tags, tagged.tags)
        assert all(row[:3] == (1.0, 1.0, 1.0) for row in found.values())
