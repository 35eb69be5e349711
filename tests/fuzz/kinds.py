"""The kinds of input: a new one is a row."""

from tests.fuzz import (
    adapters,
    answers,
    bases,
    plain_text,
    questions,
    reports,
    tables,
    tags,
    trees,
    yamls,
)
from tests.fuzz.cases import Kind

TABLE_NAMES = ("text_a", "header=False", "delimiter", "encoding")
ANSWER_NAMES = ("text_a_column", "delimiter", "encoding", "skip_bad_rows", "out", "below")
TAG_NAMES = ("tag_column", "word_column", "separator", "encoding")
KINDS = {
    "tables": Kind(tables.cases(), tables.read, TABLE_NAMES, examples=40),
    "tables to answer": Kind(answers.cases(), answers.answer, ANSWER_NAMES, examples=40),
    "questions": Kind(questions.cases(), questions.read, examples=25),
    "windows kept": Kind(questions.caches(), questions.cache, examples=10),
    "tagged words": Kind(tags.cases(), tags.read, TAG_NAMES, examples=60),
    "plain text": Kind(plain_text.cases(), plain_text.read, examples=60),
    "packed text": Kind(plain_text.caches(), plain_text.cache, examples=20),
    "adapter directories": Kind(adapters.cases(), adapters.load, examples=25),
    "adapter files": Kind(adapters.files(), adapters.read, ("--adapter", "layers"), examples=30),
    "bases": Kind(bases.configs(), bases.read, examples=25),
    "base tensors": Kind(bases.tensors(), bases.read, examples=40),
    "base checkpoints": Kind(bases.checkpoints(), bases.read, examples=20),
    "configs": Kind(yamls.cases(), yamls.config, ("--config",), examples=40),
    "sweeps": Kind(yamls.cases(), yamls.sweep, ("--sweep",), examples=30),
    "task lists": Kind(yamls.task_lists(), yamls.tasks, ("--task_name",), examples=30),
    "output folders": Kind(trees.cases(), trees.use, examples=20),
    "reports": Kind(reports.cases(), reports.draw, examples=15),
}
