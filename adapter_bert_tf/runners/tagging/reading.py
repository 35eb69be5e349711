"""Reads and checks the files of a tagging run."""

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tagging.schemes import (
    OUTSIDE,
    PLAIN,
    from_iob2,
    labels_of,
    split_tag,
    to_iob2,
)
from adapter_bert_tf.data.tagging.sentences import has_tags, read_sentences
from adapter_bert_tf.data.tagging.tagged_files import (
    TaggedSentences,
    check_labels,
    in_iob2,
    read_tagged,
)
from adapter_bert_tf.data.tagging.tfds import read_tfds_tags
from adapter_bert_tf.errors import Damaged, InputError, Mismatch
from adapter_bert_tf.heads.tag_decoding import require_decodable
from adapter_bert_tf.report_blocks import format_count
from adapter_bert_tf.runners.tagging.files import (
    dataset_of,
    file_of,
    is_dataset,
    needed_splits,
    tag_format,
)
from adapter_bert_tf.runners.tagging.task_data import TagData, data_name, subset
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.task_types.tags import TAGS

AUTO, DEFAULT = "auto", "IOB2"
PLAIN_METRICS = ("accuracy", "macro_f1")
MOST_SHOWN = 12  # Types in one line.
UNTAGGED = " If these are no right tags, adapter-bert predict --predict_file tags the words."


def check_saved(saved: SavedAdapter) -> None:
    """Raises `InputError` if a saved adapter does not tag."""
    task_type = type_of(saved.config)
    if task_type is not TAGS:
        raise Mismatch(
            f"The saved adapter was trained for the task {preview(saved.config['task'])}. "
            f"Received: tagging. {task_type.command.split()[0]} applies it."
        )


def read(
    config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None, title: str = ""
) -> TagData:
    """Reads the data of a task, and prints what it is. Raises `InputError` for wrong files.

    `title` begins the printed line.
    """
    scheme: str | None = None if config.tagging.scheme == AUTO else config.tagging.scheme
    splits: dict[str, TaggedSentences] = {}
    for split in needed_splits(config):
        splits[split] = _read_split(config, split, scheme)
        scheme = scheme or splits[split].scheme
    scheme = scheme or DEFAULT
    tagged = frozenset(s for s, part in splits.items() if part.sentences[0].tags is not None)
    first = next((splits[split].tags for split in splits if split in tagged), [])
    labels = list(saved.config["labels"]) if saved else labels_of(first, scheme)
    require_decodable(labels, scheme)
    if "train" in splits:
        _check_varied(splits["train"], config.tagging.tag_column)
    for split in tagged:
        origin = "the adapter" if saved else "the training data"
        check_labels(splits[split], labels, origin, UNTAGGED if split == "test" else "")
    most = config.data.max_train_examples
    if most and "train" in splits:
        splits["train"] = subset(splits["train"], most, config.training.seed)
    data = TagData(
        splits,
        tagged,
        labels,
        scheme,
        config.tagging.stride,
        config.tagging.decoding,
        vocabulary,
        config.data.max_seq_length,
        name_of(saved.config) if saved else data_name(config),
        _metric(config, scheme),
        None if is_dataset(config) else tag_format(config),
    )
    print(printable(f"{title}{_summary(data)}"), flush=True)
    return data


def _read_split(config: RunConfig, split: str, scheme: str | None) -> TaggedSentences:
    """Reads a split; only the test file may have no tags. Raises `InputError`."""
    form, repair = tag_format(config), config.tagging.scheme != AUTO
    if is_dataset(config):
        folder, name = config.data.data_dir, dataset_of(config)
        place, sentences = read_tfds_tags(name, folder, split, form)
        return in_iob2(sentences, place, scheme, repair)
    path = file_of(config, split)
    if split == "test" and not form.tag_column and not has_tags(path, form):
        sentences = list(read_sentences(path, form, tagged=False))
        return TaggedSentences(path, sentences, scheme or DEFAULT)
    part = read_tagged(path, form, scheme, repair)
    if split == "train" and scheme not in (None, part.scheme):
        _check_scheme(part, str(scheme))
    return part


def _check_varied(part: TaggedSentences, column: str | None) -> None:
    """Raises `InputError` if all words of the training data have the same tag."""
    found = sorted({tag for tags in part.tags for tag in tags})
    if len(found) == 1:
        place = "the last column, or key tags" if column is None else preview(column)
        raise Damaged(
            f"{part.path} has nothing to learn: each tag (in {place}) is {preview(found[0])}. A "
            "file may have its tags in another column: --tag_column names it."
        )


def _check_scheme(part: TaggedSentences, scheme: str) -> None:
    """Raises `InputError` if tags are not of the scheme that the user gave."""
    for sentence in part.sentences:
        again = from_iob2(sentence.tags or (), scheme)
        if to_iob2(again, scheme) != sentence.tags:
            raise Mismatch(
                f"{part.path}, line {sentence.line}: the tags are {part.scheme}, and --scheme="
                f"{scheme} cannot hold them. Leave --scheme out."
            )


def _metric(config: RunConfig, scheme: str) -> str:
    known = PLAIN_METRICS if scheme == PLAIN else TAGS.metrics
    metric = config.evaluation.metric
    if metric not in (None, *known):
        raise InputError(
            f"--metric must be one of {list(known)} for these tags. Received: {preview(metric)}"
        )
    return metric or known[0]


def _summary(data: TagData) -> str:
    """One line about the tags and the files."""
    types = list(dict.fromkeys(split_tag(label)[1] or label for label in data.labels))
    shown = [name for name in types if data.scheme == PLAIN or name != OUTSIDE]
    more = ", ..." if len(shown) > MOST_SHOWN else ""
    what = "tag" if data.scheme == PLAIN else "type"
    names = (
        f"{data.scheme}, {format_count(len(shown), what)} ({', '.join(shown[:MOST_SHOWN])}{more})"
    )
    parts = [
        f"{split}: {format_count(len(part), 'sentence')}, "
        f"{format_count(sum(map(len, part.words)), 'word')}, "
        f"{format_count(len(data.windows[split]), 'window')}"
        f"{'' if split in data.tagged else ', no tags'}"
        for split, part in data.splits.items()
    ]
    return "; ".join([f"Tags: {names}", *parts])
