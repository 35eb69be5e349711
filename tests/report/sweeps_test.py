"""The page of a sweep: its ranking, its drawings, and the links to its runs."""

import json
import re
import statistics

from adapter_bert_tf import report
from adapter_bert_tf.report import folder, sweeps
from adapter_bert_tf.sweeps import results
from tests.report import folders
from tests.report.page_test import parsed


def test_settings_are_ranked_with_median_and_range(tmp_path):
    found = parsed(folders.sweep(tmp_path / "out"))
    first = found.rows.index(
        ["", "learning_rate", "adapter_size", "median", "lowest", "highest", "runs"]
    )
    assert found.rows[first + 1 : first + 5] == [
        ["1", "0.001", "64", "0.7300", "0.7200", "0.7400", "3 of 3"],
        ["2", "0.001", "8", "0.7100", "0.7000", "0.7200", "3 of 3"],
        ["3", "0.0003", "64", "0.6300", "0.6200", "0.6400", "3 of 3"],
        ["4", "0.003", "64", "0.6250", "0.6200", "0.6300", "2 of 3"],
    ]
    assert "dev accuracy 0.7300 0.7200 to 0.7400" in found.text
    assert "n = 17 of 18 runs, seeds 0 to 2." in found.text
    for axis in ("--learning_rate", "--adapter_size", "eval_accuracy (from 0 to 1)"):
        assert axis in found.text
    marked = re.findall(
        r"<tr class=\"marked\"><td>\s*<bdi>(.)</bdi>", report.build(str(tmp_path / "out"))
    )
    assert marked == ["1"]


def test_runs_are_linked_where_they_have_a_page(tmp_path):
    out = folders.sweep(tmp_path / "out")
    (out / "learning_rate=0.001,adapter_size=8,seed=1" / "report.html").unlink()
    links = re.findall('<a href="([^"#]+)">', report.build(str(out)))
    assert len(links) == 17
    assert "learning_rate%3D0.001%2Cadapter_size%3D8%2Cseed%3D0/report.html" in links


def test_the_order_is_that_of_the_choice(tmp_path):
    """By the median that is shown, also of an even number of runs, as `sweeps/results.py`."""
    rows = [("b", 0.6), ("b", 0.7), ("a", 0.5), ("a", 0.9)]
    table = [["adapter", "seed", "status", "eval_accuracy"]]
    table += [[name, str(i % 2), "finished", str(score)] for i, (name, score) in enumerate(rows)]
    folders.write_table(tmp_path / "sweep.csv", table, ",")
    found = sweeps.Sweep(folder.read(str(tmp_path))).settings()
    assert [(one.values["adapter"], one.average) for one in found] == [
        ("a", 0.7),
        ("b", statistics.median([0.6, 0.7])),
    ]
    settings, scores = zip(*[({"adapter": name}, score) for name, score in rows], strict=True)
    assert results.choose(settings, scores) == 3
    ranked = results.ranking(settings, scores, ["eval_accuracy"]).splitlines()
    assert ranked[2].split()[1:3] == ["a", "0.7000"]


def test_a_run_that_diverged_counts_in_the_order(tmp_path):
    """As in `sweeps/results.py`: one good run of three is no good setting."""
    table = [["learning_rate", "seed", "status", "eval_accuracy"]]
    table += [["1.0", "0", "finished", "0.85"]]
    table += [["1.0", seed, "diverged", ""] for seed in "12"]
    table += [["0.01", seed, "finished", "0.8"] for seed in "012"]
    folders.write_table(tmp_path / "sweep.csv", table, ",")
    settings = sweeps.Sweep(folder.read(str(tmp_path))).settings()
    assert [one.name for one in settings] == ["0.01", "1.0"]


def test_a_flag_that_varies_is_not_a_setting(tmp_path):
    out = folders.sweep(tmp_path / "out")
    values = json.loads((out / "run.json").read_text())
    values["flags"] |= {"adapter_size": 8, "num_train_epochs": 3.0}
    (out / "run.json").write_text(json.dumps(values))
    rows = parsed(out).rows
    assert ["num_train_epochs", "3"] in rows
    assert not {"adapter_size", "learning_rate"} & {row[0] for row in rows if len(row) == 2}


def test_folds_are_compared_by_their_mean(tmp_path):
    table = [["seed", "fold", "status", "eval_accuracy"]]
    table += [["0", str(i), "finished", str(score)] for i, score in enumerate((0.5, 0.6, 0.9))]
    folders.write_table(tmp_path / "sweep.csv", table, ",")
    found = parsed(tmp_path)
    assert ["1", "0.6667", "0.5000", "0.9000", "3 of 3"] in found.rows
    assert "n = 3 of 3 runs, seed 0, 3 folds" in found.text and "mean" in found.text


def test_ticks_of_near_equal_scores_are_whole_numbers(tmp_path):
    table = [["seed", "fold", "status", "eval_accuracy"]]
    scores = (0.86551, 0.865514, 0.865523)
    table += [["0", str(i), "finished", str(score)] for i, score in enumerate(scores)]
    folders.write_table(tmp_path / "sweep.csv", table, ",")
    texts = parsed(tmp_path).texts
    assert "0.865514" in " ".join(texts)
    assert not [text for text in texts if re.search(r"\de[-\N{MINUS SIGN}]\d", text)]


def test_a_sweep_in_which_all_diverged_is_a_table(tmp_path):
    folders.write_table(
        tmp_path / "sweep.csv",
        [["learning_rate", "seed", "status"], ["9.0", "0", "diverged"]],
        ",",
    )
    assert ["1", "9.0", "diverged", "", "", "0"] in parsed(tmp_path).rows


def test_ten_thousand_runs_have_a_small_page(tmp_path):
    table = [["learning_rate", "seed", "status", "eval_accuracy"]]
    table += [[str(1e-4 * (i // 5)), str(i % 5), "finished", "0.5"] for i in range(10_000)]
    folders.write_table(tmp_path / "sweep.csv", table, ",")
    (tmp_path / "run.json").write_text(json.dumps({"best": "none"}))
    page = report.build(str(tmp_path))
    assert len(page) < 3_000_000 and "Runs, 200 of 10000" in page
