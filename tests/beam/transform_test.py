"""`Score` in pipelines of other people: dicts and Beam rows in, with answers out."""

import json
import typing

import apache_beam as beam
import pyarrow.parquet
import pytest
from apache_beam.testing.util import assert_that

import adapter_bert_tf as abt
from adapter_bert_tf.beam.workers import local_runner
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.store import load_adapter, save_adapter
from tests.beam.job_test import COLUMNS, pairs
from tests.predict.predictor_test import BASE, PAIRS, SCORES
from tests.refusals import raises_code
from tests.support import GOLDEN


class Pair(typing.NamedTuple):
    id: str
    sentence1: str
    sentence2: str


def scores(**options):
    columns = dict(zip(("text_a_column", "text_b_column"), COLUMNS, strict=True))
    return abt.beam.Score(PAIRS, base=BASE, **columns, **options)


def run(build):
    pipeline = beam.Pipeline(local_runner(1))
    build(pipeline)
    result = pipeline.run()
    result.wait_until_finish()
    return result


def expected(rows):
    answers = Predictor(PAIRS, base=BASE)([row[1:] for row in rows])
    return {row[0]: answer["label"] for row, answer in zip(rows, answers, strict=True)}


def has_labels(labels, get):
    def check(rows):
        assert {get(row, "id"): get(row, "label") for row in rows} == labels

    return check


def test_dicts():
    rows = pairs(40)
    dicts = [dict(zip(Pair._fields, row, strict=True)) for row in rows]

    def build(pipeline):
        scored = pipeline | beam.Create(dicts) | scores()
        assert_that(scored, has_labels(expected(rows), dict.__getitem__))

    metrics = run(build).metrics().query()
    counters = {m.key.metric.name: m.committed for m in metrics["counters"]}
    assert counters["rows"] == 40 and counters.get("bad_rows", 0) == 0
    assert sum(counters.get(f"label_{label}", 0) for label in "01") == 40
    (pieces,) = [m for m in metrics["distributions"] if m.key.metric.name == "word_pieces"]
    assert pieces.committed.count == 40 and pieces.committed.min >= 2


def test_rows_with_a_schema():
    rows = pairs(7)

    def build(pipeline):
        typed = pipeline | beam.Create([Pair(*row) for row in rows]).with_output_types(Pair)
        scored = typed | scores()
        fields = dict(scored.element_type._fields)
        assert fields["id"] is str and "probability_1" in fields and len(fields) == 6
        assert_that(scored, has_labels(expected(rows), getattr))
        chosen = scored | beam.Select("id", "label")  # A schema lets other transforms name columns.
        assert_that(chosen, has_labels(expected(rows), getattr), label="chosen")

    run(build)


def test_several_adapters_need_their_own_columns():
    rows = [
        {"kind": "one", "text_a": "It rained."},
        {"kind": "two", "text_a": "a", "text_b": "b"},
        {"kind": "two", "text_a": "a"},
    ]
    adapters = {"one": SCORES, "two": PAIRS}

    def build(pipeline):
        score = abt.beam.Score(adapters, adapter_column="kind", base=BASE)
        scored, bad = pipeline | beam.Create(rows) | score.with_bad_rows()
        kinds = scored | beam.Map(lambda row: (row["kind"], row["label"] is None))
        assert_that(kinds, check_equal([("one", True), ("two", False)]), label="scored")
        assert_that(bad | beam.Map(lambda bad: bad["row"]), check_equal(rows[2:]), label="bad")

    run(build)


def test_an_adapter_of_several_tasks_names_the_folders_of_single_ones():
    folder = GOLDEN.parent / "several" / "per_task_adapters"
    with raises_code("conflict", f"{folder}/tasks/"):
        abt.beam.Score(str(folder), base=BASE)


def test_the_new_columns_of_a_schema_are_written_to_parquet(tmp_path):
    rows = pairs(3)

    def build(pipeline):
        typed = pipeline | beam.Create([Pair(*row) for row in rows]).with_output_types(Pair)
        _ = typed | scores() | beam.io.WriteToParquet(str(tmp_path / "out"))

    run(build)
    (path,) = tmp_path.glob("out*")
    table = pyarrow.parquet.read_table(path)
    assert table.schema.field("label").type == pyarrow.string()
    assert dict(zip(*table.select(["id", "label"]).to_pydict().values(), strict=True)) == (
        expected(rows)
    )


class Text(typing.NamedTuple):
    id: str
    text: str


def test_lists_of_a_schema_are_texts_of_json(tmp_path):
    model = abt.AdapterModel(abt.load_base(BASE))
    model.add_adapter("names", ["O", "B-PER", "I-PER"], "pfeiffer", head="tags")
    model.save_adapter("names", tmp_path / "names")

    def build(pipeline):
        typed = pipeline | beam.Create([Text("1", "the cat")]).with_output_types(Text)
        scored = typed | abt.beam.Score(tmp_path / "names", base=BASE) | beam.Reshuffle()
        words = scored | beam.Map(lambda row: json.loads(row.words))
        assert_that(words, check_equal([["the", "cat"]]))

    run(build)


def test_the_columns_of_a_schema_are_identifiers(tmp_path):
    saved = load_adapter(PAIRS)
    save_adapter(tmp_path / "a", saved.config | {"labels": ["so, so", "so. so"]}, saved.weights)
    names = ["id", *COLUMNS, "label", "probability_so__so", "predicted_probability_so__so"]
    row = Pair("1", "a", "b")
    answer = Predictor(tmp_path / "a", base=BASE)(*row[1:])

    def build(pipeline):
        typed = pipeline | beam.Create([row]).with_output_types(Pair)
        columns = dict(zip(("text_a_column", "text_b_column"), COLUMNS, strict=True))
        scored = typed | abt.beam.Score(tmp_path / "a", base=BASE, **columns) | beam.Reshuffle()
        values = scored | beam.Map(lambda row: row._asdict())
        found = [*row, answer["label"], *map(pytest.approx, answer["probabilities"].values())]
        assert_that(values, check_equal([dict(zip(names, found, strict=True))]))

    run(build)


def test_bad_rows():
    rows = [
        {"id": 1, COLUMNS[0]: "a", COLUMNS[1]: "b"},
        {"id": 2, COLUMNS[0]: None, COLUMNS[1]: "b"},
        {"id": 2, COLUMNS[0]: "a"},
    ]

    def build(pipeline):
        scored, bad = pipeline | beam.Create(rows) | scores().with_bad_rows()
        assert_that(scored | beam.Map(lambda row: row["id"]), check_equal([1]), label="scored")
        assert_that(bad | beam.Map(lambda row: row["row"]["id"]), check_equal([2, 2]), label="bad")

    run(build)
    with pytest.raises(Exception, match="cannot be scored"):
        run(lambda pipeline: pipeline | beam.Create(rows) | scores())


def check_equal(values):
    def check(found):
        assert list(found) == values

    return check


def test_what_is_refused_when_the_pipeline_is_built():
    with raises_code("missing", "adapter_column"):
        abt.beam.Score([PAIRS, SCORES], base=BASE)
    with raises_code("not_found"):
        abt.beam.Score("no/such/adapter")


def test_the_graph_names_no_file_of_this_machine_but_the_adapters():
    """What goes to the workers of a cluster is the package's own code and plain values."""
    pipeline = beam.Pipeline(local_runner(1))
    _ = pipeline | beam.Create([{"text": "a"}]) | scores()
    graph = pipeline.to_runner_api()
    names = {t.unique_name for t in graph.components.transforms.values()}
    assert any("RunInference" in name or "Answer" in name for name in names)
    urns = {t.spec.urn for t in graph.components.transforms.values()}
    assert not [urn for urn in urns if "external" in urn]
