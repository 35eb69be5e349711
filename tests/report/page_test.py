"""The page of an output folder: what it says, whatever is in the files."""

import html.parser
import importlib
import json
import pathlib
import pkgutil
import re
import shutil
import sys
import time

import numpy as np
import pytest

from adapter_bert_tf import analysis, report
from adapter_bert_tf.cli.analyze import main
from adapter_bert_tf.report.pictures import ANALYSES
from adapter_bert_tf.run.result_files import write_details_file
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.task_types.metrics import class_table
from tests.refusals import raises_code
from tests.report import folders

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "written_before" / "out"
VOID = {"meta", "link", "img", "path", "use"}


class Parsed(html.parser.HTMLParser):
    """A page as a browser reads it: its tags, its texts, and the cells of its rows."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.open, self.rows = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open += [] if tag in VOID else [tag]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip()

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def parsed(folder):
    """The page of a folder, which every test so sees to be well formed."""
    page = report.build(str(folder))
    found = Parsed(page)
    assert not found.open, found.open
    ids = [values["id"] for _, values in found.tags if "id" in values]
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(|href=")#([^)"]+)', page)
    assert set(used) <= set(ids)
    return found


TITLES = {  # Flags of a run, and its name in the title.
    "a known task": ({"task_name": "mrpc"}, "mrpc"),
    "a table": ({"task_name": "tsv", "data_dir": "/data/reviews/"}, "reviews"),
    "a table with a name": (
        {"task_name": "TSV", "data_dir": "reviews", "adapter_name": "stars"},
        "stars",
    ),
    "texts from Python": (
        {"task_name": "tsv", "data_dir": "out/mine/data-0123456789ab", "output_dir": "out/mine"},
        "mine",
    ),
    "a table without a folder": ({"task_name": "tsv"}, "tsv"),
}


@pytest.mark.parametrize("case", TITLES)
def test_the_title_names_the_task(case, tmp_path):
    flags, name = TITLES[case]
    folders.write(tmp_path, folders.record(flags=flags | {"tuning": "adapters"}))
    assert f"<title>{name}, adapters" in report.build(str(tmp_path))


RUNS = {
    "classes": folders.classes_run,
    "squad": folders.squad_run,
    "tags": folders.tags_run,
    "several": folders.several_run,
    "sweep": folders.sweep,
}


@pytest.fixture
def run(tmp_path):
    return folders.classes_run(tmp_path / "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The text of the page of such a run."""
    return parsed(folders.classes_run(tmp_path_factory.mktemp("whole") / "run")).text


def test_it_says_what_was_trained_and_on_what(run):
    found = parsed(run)
    assert found.rows[:5] == [
        ["group", "trained", "of", "share of all"],
        ["adapters", "30", "30", "3.000%"],
        ["head", "6", "6", "0.600%"],
        ["layers", "0", "964", "0.000%"],
        ["all", "36", "1,000", "3.600%"],
    ]
    for row in (
        ["adapter_size", "8"],
        ["learning_rate", "0.001"],
        ["seed", "3"],
        ["seconds of training", "12.2"],
        ["train", "64", "25.0%", "abababababab"],
        ["dev", "16", "0.0%", "cdcdcdcdcdcd"],
        ["--output_dir", "out <1>"],
        ["tensorflow", "2.20.0"],
    ):
        assert row in found.rows, row
    assert "demo, adapters" in found.text and "0.7500 dev accuracy" not in found.text
    assert "dev accuracy 0.7500 dev loss 0.5000" in found.text
    assert folders.record()["command"] in found.text


def test_a_run_that_went_on_knows_the_time_since(tmp_path):
    folders.classes_run(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(record | {"resumed_from_step": 1200}))
    found = parsed(tmp_path)
    assert ["seconds of training, since step 1,200", "12.2"] in found.rows
    assert not [row for row in found.rows if row[0] == "seconds of training"]
    after_the_last = {"resumed_from_step": 1200, "train_seconds": 0.0, "examples_per_second": 0.0}
    (tmp_path / "run.json").write_text(json.dumps(record | after_the_last))
    assert not [row for row in parsed(tmp_path).rows if "since step" in row[0]]


def test_it_says_what_the_errors_are(run):
    found = parsed(run)
    assert ["<b>no</b>", "0.6667", "0.5000", "0.5714", "4"] in found.rows
    assert "The 3 most confident of 3 errors. n = 8 examples of dev, seed 3." in (found.text)
    facts = (
        "predicted $y$_es true label <b>no</b> probability 0.9900 of the true label 0.0100 "
        "line of the file 7"
    )
    assert facts in found.text
    # Right are 1 of 0.6; of 0.643, 0.686 and 0.7 two; of 0.729, 0.771 and 0.8 two; none of 0.99.
    assert f"Expected calibration error {(0.4 + 0.029 + 0.3 + 0.99) / 8:.3f}" in found.text


def test_every_chart_names_its_axes_units_n_and_seeds(run):
    page = report.build(str(run))
    found = Parsed(page)
    shown = [values["aria-label"] for tag, values in found.tags if tag == "svg"]
    assert len(shown) == 5 and all(shown)
    for axis in (
        "loss (cross-entropy, nats)",
        "learning rate (per step)",
        "accuracy (from 0 to 1)",
        "predicted class",
        "true class",
        "proportion of row (0 to 1)",
        "probability of the answer (mean of a bin)",
        "share of right answers",
    ):
        assert axis in found.text, axis
    captions = re.findall(r"</svg>\s*<figcaption>(.*?)</figcaption>", page, re.S)
    assert len(captions) == 5 and all("seed 3" in caption.lower() for caption in captions)
    assert sum("n = " in caption for caption in captions) == 4  # A learning rate is of no example.


def test_questions_have_the_worst_answers(tmp_path):
    found = parsed(folders.squad_run(tmp_path / "run"))
    assert "The 2 worst of 2 answers below an F1 of 100%" in found.text
    assert "F1 0% probability 0.800 predicted no answer expected 1779" in found.text
    marks = re.findall("<mark[^>]*>(.*?)</mark>", report.build(str(tmp_path / "run")))
    assert marks == ["1779", "1779"]
    assert "adapter-bert squad --config=run.json" in found.text


def test_scores_and_any_number_of_labels(tmp_path):
    folders.scores(folders.write(tmp_path / "scores"))
    found = parsed(tmp_path / "scores")
    assert "predicted 5.0000 true score 0.1695 residual +4.8305" in found.text
    assert "predicted score (same unit)" in found.text
    folders.sets(folders.write(tmp_path / "sets"))
    found = parsed(tmp_path / "sets")
    assert ["<i>blue</i>", "1", "1", "1"] in found.rows
    assert "predicted <i>blue</i> true label not <i>blue</i> probability 0.9500" in found.text


def test_two_units_of_a_loss_have_two_charts(tmp_path):
    """A regression trains on standardized scores, and evaluates their own."""
    flags = {"task_name": "tsv", "regression": True, "seed": 0}
    steps = folders.curves("eval_spearman")
    values = folders.record(flags=flags, chosen_by=["eval_spearman"])
    folders.scores(folders.write(tmp_path, values, steps))
    found = parsed(tmp_path)
    drawn = {values["aria-label"] for tag, values in found.tags if values.get("role") == "img"}
    first, second = sorted(label for label in drawn if label.startswith("loss"))
    assert "(squared error of the scores)" in first and "dev ends at 0.6" in first
    assert "standardized" in second and "dev" not in second
    assert "spearman (from -1 to 1)" in found.text


def test_curves_of_a_dev_subset_give_its_size(tmp_path):
    flags = folders.record()["flags"] | {"max_eval_examples": 6}
    text = parsed(folders.write(tmp_path, folders.record(flags=flags))).text
    assert text.count("n = 6 dev examples (a subset)") == 2
    assert "n = 16 dev" not in text


def test_several_tasks_have_a_section_each(tmp_path):
    found = parsed(folders.several_run(tmp_path / "run"))
    for title in ("Evaluation: mrpc: dev", "Evaluation: news: dev", "Evaluation: sts-b: dev"):
        assert title in found.text
    assert ["mrpc train", "64", "", ""] in found.rows
    assert "n = 192 train examples of 3 tasks, seed 3" in found.text
    assert "mrpc f1" in found.text and "sts-b spearman" in found.text  # The lines of one chart.


def test_very_many_classes_are_pairs(tmp_path):
    names = [f"class {i}" for i in range(50)]
    folder = folders.write(tmp_path / "run")
    folders.classes(folder, np.arange(100) % 50, labels=names, texts=[("a",)])
    found = parsed(folder)
    assert ["class 47", "class 48", "1", "50.0%"] in found.rows
    assert "Most confused pairs of 50 classes" in found.text


@pytest.mark.parametrize("name", RUNS)
def test_the_same_files_give_the_same_bytes_and_nothing_from_elsewhere(name, tmp_path):
    folder = RUNS[name](tmp_path / "run")
    first = report.build(str(folder))
    assert report.build(str(shutil.copytree(folder, tmp_path / "copy" / "run"))) == first
    for tag, values in Parsed(first).tags:
        assert tag not in ("script", "iframe", "object", "embed", "form", "base")
        assert not [n for n in values if n.startswith("on")]
        for link in ("src", "href", "xlink:href"):
            assert re.match(r"#|data:|[\w=.,%-]+/report\.html$", values.get(link) or "#")
    assert not re.search(r"https?:|@import", first)


def test_texts_stay_texts(run):
    page = report.build(str(run))
    assert page.encode("utf-8")
    assert "<script" not in page and "onerror" in page and "<img" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    text = Parsed(page).text
    for shown in folders.HOSTILE[1:]:
        said = shown.replace("\x07", "\\x07").replace("\ud800", "\\ud800")
        said = said.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
        assert said in text, said
    assert page.count('<p dir="auto">') == 3 and "$y$_es" in page


def test_a_label_of_any_letters_is_drawn(tmp_path):
    control = "\x00" if sys.version_info >= (3, 11) else "\x01"  # Python 3.10's csv writes no NUL.
    labels = ("\u65e5\u672c\u8a9e", f"$\\alpha$ \u202e{control} <&>", "#0a0101", "a" * 500)
    folder = folders.write(tmp_path / "run")
    folders.classes(folder, (0, 1, 2, 3, 2, 1, 0), labels=labels, texts=[("",)])
    found = parsed(folder)
    assert "\u65e5\u672c\u8a9e" in found.text
    assert f"$\\alpha$ \\u202e\\x{ord(control):02x} <&>" in found.text


DAMAGE = {
    "no metrics": ("metrics.jsonl", None, "loss (cross-entropy", None),
    "half a row": ("metrics.jsonl", b'{"step": 1, "loss": 1}\n{"st', "", None),
    "no row": ("metrics.jsonl", b"\xff\xfe", "loss (cross-entropy", "metrics.jsonl is damaged"),
    "metrics that are none": (
        *("metrics.jsonl", b'{"step": 1, "loss": NaN}\n', "loss (cross-entropy"),
        None,
    ),
    "no classes": ("eval_classes.tsv", None, "true class", None),
    "half of them": ("eval_classes.tsv", b"label\tp\nx\t1\n", "true class", "eval_classes.tsv is"),
    "no details": ("eval_details.json", None, "share of right answers", None),
    "other details": ("eval_details.json", b'{"kind": "x"}', "share of right", "eval_details.json"),
    "empty details": (
        *("eval_details.json", b'{"kind": "classes", "examples": 3}', "share of right"),
        "eval_details",
    ),
    "wild details": (
        "eval_details.json",
        b'{"kind": "classes", "calibration": {"bins": [{"count": 1, "share": "x", '
        b'"probability": []}], "error": 1}, "errors": 2, "shown": [{"texts": 3}]}',
        "share of right",
        "eval_details",
    ),
    "no record": ("run.json", None, "Parameters, by group", None),
    "a damaged record": ("run.json", b'{"flags": ', "Parameters, by group", "run.json is damaged"),
    "a list": ("run.json", b"[]", "Parameters, by group", "run.json is damaged"),
    "a wild record": (
        *("run.json", b'{"parameters": {"total": "x"}, "flags": 3, "tasks": 4}'),
        *("Parameters, by group", "run.json is damaged"),
    ),
    "no results": ("eval_results.txt", b"eval_accuracy\n", "", "eval_results.txt is damaged"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_is_damaged_is_left_out_and_named(case, run, whole):
    name, content, gone, said = DAMAGE[case]
    assert gone in whole
    (run / name).unlink()
    if content is not None:
        (run / name).write_bytes(content)
    text = parsed(run).text
    assert not gone or gone not in text
    assert ("Damaged files" in text) == (said is not None)
    assert said is None or said in text
    assert name == "run.json" or "Reproduction" in text  # The rest is there.


@pytest.mark.parametrize("name", ["finished", "sweep", "interrupted"])
def test_folders_of_earlier_versions_have_a_page(name, tmp_path):
    folder = shutil.copytree(GOLDEN / name, tmp_path / name)
    found = parsed(folder)
    assert "Damaged files" not in found.text
    said = {"finished": "18.450%", "sweep": "2 of 2 runs, seeds 0 to 1", "interrupted": "loss ("}
    assert said[name] in found.text


def test_a_folder_without_anything_is_refused(tmp_path, capsys):
    with raises_code("not_found", "--output_dir"):
        report.write(str(tmp_path / "none"))
    (tmp_path / "notes.txt").write_text("mine")
    with raises_code("not_found", "run.json"):
        report.write(str(tmp_path))
    assert main(["report", f"--output_dir={tmp_path}"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_command_writes_it(run, capsys):
    assert main(["report", f"--output_dir={run}"]) == 0
    assert capsys.readouterr().out == f"Report: {run}/report.html\n"
    assert (run / "report.html").read_text() == report.build(str(run))
    (run / "report.html").write_text("mine")
    with raises_code("occupied", "report.html"):
        report.write(str(run))
    (run / "report.html").unlink()
    (run / "report.html").symlink_to(run / "run.json")
    with raises_code("occupied", "report.html"):
        report.write(str(run))
    (run / "report.html").unlink()
    (run / "report.html").mkdir()
    with raises_code("occupied", "report.html"):
        report.write(str(run))


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg"><metadata><dc:description>python -m '
    "x &amp;&amp; '&lt;b&gt;'</dc:description></metadata></svg>"
)


def test_figures_of_analyses_stand_in_the_page(run, tmp_path):
    for folder in (run, tmp_path / "compared"):
        folder.mkdir(exist_ok=True)
        (folder / "compare.svg").write_text(SVG)
        (folder / "compare.png").write_bytes(b"\x89PNG" + bytes(10))
        (folder / "compare.csv").write_text("run,accuracy\n<a>,0.123456789\n")
        (folder / "mine.svg").write_text(SVG)
        found = parsed(folder)
        images = [values["src"] for tag, values in found.tags if tag == "img"]
        assert len(images) == 1 and images[0].startswith("data:image/svg+xml;base64,")
        assert "python -m x && '<b>'" in found.text and ["<a>", "0.1235"] in found.rows


def test_every_analysis_is_known():
    """The report is below them, so it has their names of its own."""
    found = pkgutil.walk_packages(analysis.__path__, f"{analysis.__name__}.")
    modules = [importlib.import_module(one.name) for one in found if "__main__" not in one.name]
    written = {module.NAME for module in modules if hasattr(module, "NAME")}
    assert len(written) > 7 and written <= set(ANALYSES)


def test_a_figure_that_is_too_large_is_named(tmp_path):
    (tmp_path / "size.svg").write_bytes(SVG.encode() + bytes(10**6))
    assert "size.png is too large for this page." in parsed(tmp_path).text


def hundred_thousand(folder):
    """A run with 100,000 predictions of 60 classes, long texts, and a long training."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 60, 100_000)
    predicted = rng.dirichlet(np.full(60, 0.1), 100_000).astype(np.float32)
    labels = [f"a label of some length, number {i}" for i in range(60)]
    steps = [{"step": i, "loss": 1 / i, "learning_rate": 1e-3} for i in range(1, 100_001)]
    folders.write(folder, steps=steps)
    began = time.process_time()
    table = class_table(labels, ids, predicted.argmax(-1))
    folders.write_table(folder / "eval_classes.tsv", table)
    found = TASK_TYPES["classification"].details(labels, ids, predicted)
    found = folders.with_texts(found, [(text[:600],) for text in (folders.CONTEXT * 9,)])
    write_details_file(str(folder), "eval_details", "big", "dev", {"examples": 100_000, **found})
    return began


def test_the_page_of_many_predictions_is_small_and_quick(tmp_path):
    began = hundred_thousand(tmp_path / "run")
    path = pathlib.Path(report.write(str(tmp_path / "run")))
    assert time.process_time() - began < 10
    assert path.stat().st_size < 3_000_000
    assert (tmp_path / "run" / "eval_details.json").stat().st_size < 100_000


def test_a_later_command_is_named(run):
    values = json.loads((run / "run.json").read_text())
    values["later_runs"] = [{"command": "python run_classifier.py --do_eval"}, "no run"]
    (run / "run.json").write_text(json.dumps(values))
    assert "A later command python run_classifier.py --do_eval" in parsed(run).text
    values["later_runs"] = [{"command": values["command"]}]  # A sweep that applies its best run.
    (run / "run.json").write_text(json.dumps(values))
    assert "A later command" not in parsed(run).text


def test_results_of_another_adapter_are_named(run):
    values = json.loads((run / "run.json").read_text())
    lines = (run / "eval_results.txt").read_text().splitlines()
    shown = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    shown.pop("global_step", None)
    values["later_runs"] = [
        {"command": "again", "eval": shown, "flags": {"adapter_dir": "other/adapter"}}
    ]
    for before, is_noted in ((shown, False), ({"eval_accuracy": 0.25}, True)):
        (run / "run.json").write_text(json.dumps(values | {"eval": before}))
        text = parsed(run).text
        assert ("are those of the adapter other/adapter (again)." in text) == is_noted
        assert ("settings it shows had eval_accuracy 0.2500." in text) == is_noted


def test_the_repeated_run_is_found_from_where_the_command_was_given(run):
    assert "--config='out <1>/run.json' --output_dir=AGAIN" in parsed(run).text
