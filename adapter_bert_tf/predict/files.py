"""Files that a `Predictor` answers: tables of texts, and files of words."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from adapter_bert_tf.predict import columns, tables, tagged_files
from adapter_bert_tf.task_types import type_of

TEXT_COLUMNS = ("text_a_column", "text_b_column")


def answer_file(
    path: str,
    output: str,
    config: Mapping[str, Any],
    answers_of: Callable[[Iterable[Any]], Iterable[dict[str, Any]]],
    options: Mapping[str, Any],
    problem_of: Callable[[tables.Texts], str | None] = lambda texts: None,
) -> int:
    """Writes the answers of an adapter to a file; returns the number of rows or sentences.

    A tagger also reads files of words, such as `.conll`: see `tagged_files.answer_words`.

    Args:
      path, output: the file that is read, and the one that is written.
      config: of the adapter.
      answers_of: from rows to their answers, in order.
      options: of `Predictor.predict_file`, and of words `word_column`, `separator` and `comments`.
        Raises `InputError` for those without effect.
      problem_of: from the texts of a row of a table to why it cannot be answered, or None.
    """
    if form := tagged_files.format_of_words(config, path, output, options):
        own = {name: options[name] for name in ("overwrite", "progress") if name in options}
        scheme = config["inputs"]["scheme"]
        return tagged_files.answer_words(path, output, form, scheme, answers_of, **own)
    given = {name: v for name, v in options.items() if name not in tagged_files.OF_WORDS}
    text_a, text_b = (given.get(name) for name in TEXT_COLUMNS)
    if text_a is None:
        tagged_files.warn_of_table(config, path)
    return tables.answer_file(
        path,
        output,
        type_of(config).columns(config),
        lambda names: columns.text_columns(config, names, text_a, text_b),
        answers_of,
        cells_of=type_of(config).cells,
        problem_of=problem_of,
        **columns.reading_options(config, path, given),
    )
