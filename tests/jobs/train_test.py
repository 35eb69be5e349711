"""Training in one call of Python: what the command leaves for a table of one's own."""

import json
import os
import pathlib
import sys

import numpy as np
import pandas
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf import storage
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.data.examples import read_examples
from adapter_bert_tf.jobs import python_tables
from adapter_bert_tf.jobs.python_data import Given
from adapter_bert_tf.tasks import own_task
from tests import processes, support
from tests.refusals import raises_code
from tests.runs import base_flags, command

SMALL = {"max_seq_length": 16, "train_batch_size": 8, "learning_rate": 1e-2, "seed": 3}


def sentences(count, seed=0):
    """Texts and labels that can be learned: `bad` where there is a `not`."""
    rng = np.random.default_rng(seed)
    words = [word for word in support.WORDS[:20] if word not in ("not", "red")]
    ends = [" red red", " not not"]
    texts = [" ".join(rng.choice(words, 3)) + ends[i % 2] for i in range(count)]
    return texts, [["good", "bad"][i % 2] for i in range(count)]


def google_files(folder, count=3):
    """Names of a base's files as keywords: the first of vocabulary, configuration, weights."""
    flags = [flag.removeprefix("--").split("=") for flag in base_flags(folder)]
    return dict(flags[:count])


@pytest.fixture(scope="module")
def trained(tiny_base_folder, tmp_path_factory):
    texts, labels = sentences(64)
    return abt.train(
        texts,
        labels,
        dev=sentences(16, seed=1),
        output_dir=tmp_path_factory.mktemp("run") / "out",
        base_model=str(tiny_base_folder),
        num_train_epochs=20,
        **SMALL,
    )


def test_it_has_learned_and_predicts(trained):
    assert trained.results["eval_accuracy"] == 1.0
    answers = trained(["the house not not", "the big red red"])
    assert [answer["label"] for answer in answers] == ["bad", "good"]
    assert set(answers[0]["probabilities"]) == {"good", "bad"}


def test_it_is_saved_and_exported(trained, tiny_base_folder, tmp_path):
    trained.save(tmp_path / "adapter")
    trained.export(tmp_path / "saved_model")
    texts = sentences(6, seed=2)[0]
    expected = [list(answer["probabilities"].values()) for answer in trained(texts)]
    again = abt.Predictor(tmp_path / "adapter", base=str(tiny_base_folder))(texts)
    found = [list(answer["probabilities"].values()) for answer in again]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    serve = tf.saved_model.load(str(tmp_path / "saved_model")).signatures["serving_default"]
    served = serve(text_a=tf.constant(texts))["probabilities"]
    np.testing.assert_allclose(served, expected, atol=1e-5)
    with raises_code("occupied"):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "file").write_text("x")
        trained.export(tmp_path / "mine")


def test_the_command_evaluates_what_python_trained(trained, tiny_base_folder, tmp_path):
    (data,) = pathlib.Path(trained.output_dir).glob("data-*")
    failed = command(
        "--task_name=tsv",
        f"--data_dir={data}",
        "--do_eval",
        *base_flags(tiny_base_folder),
        f"--adapter_dir={trained.output_dir}/adapter",
        f"--output_dir={tmp_path}",
    )
    assert failed is None, failed
    assert json.loads((tmp_path / "run.json").read_text())["eval"] == trained.results


def test_the_same_call_again_finds_itself_done(trained, tiny_base_folder, capsys):
    texts, labels = sentences(64)
    again = abt.train(
        texts, labels, dev=sentences(16, seed=1), output_dir=trained.output_dir,
        base_model=str(tiny_base_folder), num_train_epochs=20, **SMALL,
    )  # fmt: skip
    assert "holds the results of this very run" in capsys.readouterr().out
    assert again.results == trained.results
    with raises_code("occupied"):
        abt.train(
            texts[:-2], labels[:-2], output_dir=trained.output_dir,
            base_model=str(tiny_base_folder), **SMALL,
        )  # fmt: skip
    assert abt.Predictor(f"{trained.output_dir}/adapter", base=str(tiny_base_folder))


BASES = {  # Settings; `{base}` and `{own}` are folders of two bases.
    "three files": google_files("{own}"),
    "a checkpoint": {"base_model": "{base}", "init_checkpoint": "{own}/bert_model.ckpt"},
    "a case": {"base_model": "{own}", "do_lower_case": False},
    "random weights": google_files("{own}", 2) | {"tuning": "full"},
    "the best of a sweep": {"base_model": "{base}", "sweep": "{own}/sweep.yaml"},
}


@pytest.mark.long
@pytest.mark.parametrize("case", BASES)
def test_it_predicts_on_the_base_that_it_was_trained_on(case, tiny_base_folder, tmp_path):
    own = tmp_path / "own"
    support.write_google(own, support.random_weights(seed=1))
    (own / "sweep.yaml").write_text(f"init_checkpoint: [{own}/bert_model.ckpt]")
    settings = {
        name: value.format(base=tiny_base_folder, own=own) if isinstance(value, str) else value
        for name, value in BASES[case].items()
    }
    task = abt.train(*sentences(16), dev=sentences(8), num_train_epochs=1, **settings, **SMALL)
    weights = None if case == "random weights" else f"{own}/bert_model.ckpt"
    assert task.model.base.weights_path == weights
    assert task.model.base.vocabulary.lower_case is (case != "a case")
    assert task("the cat")["label"] in ("good", "bad")


@pytest.mark.slow
def test_several_seeds_have_results_and_folds_are_for_the_command(tiny_base_folder):
    texts, labels = sentences(32)
    settings = {"base_model": str(tiny_base_folder), "num_train_epochs": 1, **SMALL}
    task = abt.train(texts, labels, num_trials=2, **settings)
    names = {"eval_accuracy", "eval_accuracy_min", "eval_accuracy_max"}
    assert names < task.results.keys()
    with raises_code("invalid", "'folds'"):
        abt.train(texts, labels, folds=2, **settings)


@pytest.mark.slow
def test_frames_pairs_and_scores(tiny_base_folder):
    first, second = sentences(32)[0], sentences(32, seed=1)[0]
    frame = pandas.DataFrame({"id": range(32), "said": first, "heard": second})
    frame["how"] = np.linspace(-1, 3, 32)
    task = abt.train(
        frame, "how", text_a_column="said", text_b_column="heard", regression=True, dev=frame[:8],
        base_model=str(tiny_base_folder), num_train_epochs=1, **SMALL,
    )  # fmt: skip
    assert set(task.results) >= {"eval_spearman", "eval_pearson"}
    found = task(frame)
    assert list(found.columns) == ["id", "said", "heard", "how", "score"]
    assert np.isfinite(found["score"]).all() and found["score"].nunique() > 4


@pytest.mark.slow
def test_numbers_are_labels_by_their_text(tiny_base_folder):
    texts, labels = sentences(32)
    numbers = [float(label == "good") for label in labels]
    task = abt.train(texts, numbers, base_model=str(tiny_base_folder), num_train_epochs=1, **SMALL)
    assert set(task(texts[0])["probabilities"]) == {"0", "1"}
    assert not task.output_dir.startswith(str(pathlib.Path.cwd()))


@pytest.mark.slow
def test_the_folder_goes_with_the_process_if_none_is_given(tiny_base_folder, tmp_path):
    texts, labels = sentences(16)
    settings = {"max_seq_length": 16, "train_batch_size": 8, "base_model": str(tiny_base_folder)}
    script = f"import adapter_bert_tf as abt; task = abt.train({texts}, {labels}, **{settings})\n"
    script += "print('left in', task.output_dir)"
    done = processes.run([sys.executable, "-c", script], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not pathlib.Path(done.stdout.rpartition("left in ")[2].strip()).exists()
    assert list(tmp_path.iterdir()) == []


WRONG = {
    "a label less": (lambda **f: abt.train(["a", "b"], ["c"], **f), "invalid: label"),
    "a text": (lambda **f: abt.train("a", ["c"], **f), "invalid: are lists"),
    "a number": (lambda **f: abt.train([1, 2], ["c", "d"], **f), "invalid: A text is a string"),
    "one label": (lambda **f: abt.train(["a"] * 9, ["c"] * 9, **f), "invalid: too few"),
    "an unknown flag": (
        lambda **f: abt.train(["a"], ["c"], rate=1, **f),
        "invalid: 'rate'",
    ),
    "a flag of ours": (
        lambda **f: abt.train(["a"], ["c"], data_dir="x", **f),
        "invalid: no arguments",
    ),
    "a place of no export": (
        lambda **f: abt.train(["a"], ["c"], export_dir="x", **f),
        "invalid: no arguments",
    ),
    "a file of flags": (
        lambda **f: abt.train(["a"], ["c"], config="x", **f),
        "invalid: no arguments",
    ),
    "a dict in the place of a folder": (
        lambda **f: abt.train(["a"], ["c"], stack={"mine": "folder"}, **f),
        "invalid: stack",
    ),
    "a dev of single texts": (
        lambda **f: abt.train(["a"], ["c"], others=["b"], dev=(["a"], ["c"]), **f),
        "invalid: 'text_a'",
    ),
    "a dev whose second texts are none": (
        lambda **f: abt.train(["a"], ["c"], dev=(["a"], ["c"], 1), **f),
        "invalid: 'a'",
    ),
    "columns of a list": (
        lambda **f: abt.train(["a"], ["c"], text_b_column="b", **f),
        "invalid: 'b'",
    ),
    "others of a frame": (
        lambda **f: abt.train(
            pandas.DataFrame({"a": ["x"], "b": ["y"]}), "b", ["z"], text_a_column="a", **f
        ),
        "invalid: texts",
    ),
    "a wrong value": (lambda **f: abt.train(["a"], ["c"], tuning="x", **f), "invalid: tuning"),
    "a method of several tasks": (
        lambda **f: abt.train(*sentences(32), tuning="per_task_adapters", **f),
        "conflict: tuning=per_task_adapters",
    ),
    "random weights that no file keeps": (
        lambda base_model, **f: abt.train(*sentences(32), **google_files(base_model, 2), **f),
        "missing: init_checkpoint or base_model",
    ),
    "a long value": (
        lambda **f: abt.train(["a"], ["c"], learning_rate="x" * 3000, **f),
        "invalid: learning_rate=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    "wrong weights": (
        lambda **f: abt.train(*sentences(32), class_weights="bad:2", **f),
        "invalid: class_weights",
    ),
    "a wrong column": (
        lambda **f: abt.train(pandas.DataFrame({"a": ["x"]}), "b", text_a_column="a", **f),
        "invalid: 'a'",
    ),
    "a missing label": (
        lambda **f: abt.train(["a", "b"], ["c", float("nan")], **f),
        "invalid: label",
    ),
    "a gap of pandas": (
        lambda **f: abt.train(["a", "b"], pandas.Series([1, None], dtype="Int64"), **f),
        "invalid: label",
    ),
    "no label": (lambda **f: abt.train(["a"], [None], **f), "invalid: label"),
    "a list of labels": (
        lambda **f: abt.train(["a"], [["c"]], **f),
        "invalid: multi_label=True",
    ),
    "a missing one of several": (
        lambda **f: abt.train(["a"], [None], multi_label=True, **f),
        "invalid: label",
    ),
    "a label of two": (
        lambda **f: abt.train(["a"], [["c|d"]], multi_label=True, **f),
        "invalid: must not hold '",
    ),
    "labels beside a frame": (
        lambda **f: abt.train(pandas.DataFrame({"a": ["x"]}), ["b"], text_a_column="a", **f),
        "invalid: 'b'",
    ),
    "several in an array": (
        lambda **f: abt.train(["a"], [np.array(["c"])], **f),
        "invalid: multi_label=True",
    ),
    "a number for each label": (
        lambda **f: abt.train(["a"], np.array([[0, 1]]), multi_label=True, **f),
        "invalid: label",
    ),
    "lists of 0 and 1": (
        lambda **f: abt.train(["a", "b"], [[1, 0, 0, 1], [0, 1, 0, 0]], multi_label=True, **f),
        "invalid: [1, 0, 0, 1]",
    ),
    "bytes": (
        lambda **f: abt.train(["a"], np.array([b"c"]), **f),
        "invalid: label",
    ),
    "a dict": (lambda **f: abt.train(["a"], [{"c": 1}], **f), "invalid: label"),
    "a set of texts": (lambda **f: abt.train({"a"}, ["c"], **f), "invalid: labels"),
    "two columns of the label": (
        lambda **f: abt.train(
            pandas.DataFrame([["x", "y", "z"]], columns=["a", "b", "b"]),
            "b",
            text_a_column="a",
            **f,
        ),
        "invalid: 'b'",
    ),
    "one column for both": (
        lambda **f: abt.train(pandas.DataFrame({1: ["x"]}), 1, text_a_column=1, **f),
        "invalid: names of others",
    ),
    "a wrong method": (
        lambda **f: abt.train(["a"], ["c"], adapter={"size": 4}, **f),
        "invalid: unknown adapter config keys",
    ),
    "a class in a sweep": (
        lambda **f: abt.train(["a"], ["c"], sweep={"adapter": [abt.AdapterConfig]}, **f),
        "invalid: sweep",
    ),
    "no column": (
        lambda **f: abt.train(pandas.DataFrame({"a": ["x"]}), "a", **f),
        "invalid: text_a_column",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_training(case, tiny_base_folder, tmp_path):
    call, message = WRONG[case]
    with raises_code(message) as raised:
        call(base_model=str(tiny_base_folder), max_seq_length=16, output_dir=tmp_path / "out")
    assert "--" not in str(raised.value)
    # What is wrong with the rows is said of their file, which then is there.
    left = {"one label": ["train.csv"], "wrong weights": ["train.csv"]}
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == left.get(case, [])


@pytest.mark.parametrize("grid", [{"learning_rate": [1e-3, 1e-2]}, {"tuning": ["full", "head"]}])
def test_a_sweep_on_random_weights_that_no_file_keeps(grid, tiny_base_folder, tmp_path):
    """Any of its runs may be the best, whose adapter is loaded at the end."""
    texts, labels = sentences(32)
    with raises_code("missing: init_checkpoint or base_model"):
        abt.train(
            texts, labels, **google_files(tiny_base_folder, 2), sweep=grid, output_dir=tmp_path
        )
    assert not [*tmp_path.glob("*=*")]  # No run began.


OBJECTS = {
    "a configuration": {"adapter": abt.AdapterConfig(4, activation="relu")},
    "a preset": {"adapter": abt.PRESETS["lora"], "adapter_size": 2},
    "a dict": {"adapter": {"kind": "ia3", "projections": ["key"]}},
    "a sweep": {
        "adapter": {"bottleneck_size": 4},
        "sweep": {"learning_rate": np.logspace(-3, -2, 2)},
    },
}
MADE = {
    "a configuration": "size 4, relu, serial, after attention and feed_forward",
    "a preset": "LoRA of rank 2, alpha 8, on query, value",
    "a dict": "(IA)^3 on key",
    "a sweep": "size 4, gelu, serial, after attention and feed_forward",
}


@pytest.mark.parametrize("case", OBJECTS)
def test_a_method_and_a_sweep_may_be_objects(case, tiny_base_folder, tmp_path):
    texts, labels = sentences(16)
    given = {**SMALL, "num_train_epochs": 1, "output_dir": tmp_path, "report": False}
    given |= OBJECTS[case] | {"base_model": str(tiny_base_folder)}
    task = abt.train(texts, labels, dev=(texts, labels), **given)
    saved = abt.load_adapter(f"{tmp_path}/adapter").config["adapter"]
    assert ModuleConfig.from_dict(saved).summary() == MADE[case]
    again = abt.train(texts, labels, dev=(texts, labels), **given)
    assert again.results == task.results
    if case == "a sweep":
        assert len([*tmp_path.glob("learning_rate=*")]) == 2


def test_texts_of_any_characters_and_pairs_become_the_same_table(tmp_path):
    texts = ["a\rb", 'c "d"\n', "e,f", "\tg"]
    pairs = list(zip(texts, texts[::-1], strict=True))
    table = python_tables.table_of(pairs, ["x", 1, 2.0, "y"])
    assert table == python_tables.table_of(texts, ["x", "1", "2", "y"], texts[::-1])
    given = Given(pairs, ["x", 1, 2.0, "y"], None, None, ())
    data = python_tables.data_of(given, {})
    [(name, content)] = data.files.items()
    path = os.path.join(data.folder_in(str(tmp_path)), name)
    storage.write_bytes(path, content)
    folder = str(pathlib.Path(path).parent)
    task = own_task("text_a", "text_b", "label", extension="csv")
    examples = read_examples(task, folder, ["train"])["train"]
    assert examples.texts() == pairs and examples.labels == ["x", "1", "2", "y"]


NUMBERED = {  # Names of columns of a frame: the text's, the label's.
    "in their places": (0, 1),
    "the label first": (1, 0),
    "behind others": (3, 1),
    "as text": ("1", "0"),
    "one of them": (1, "how"),
}


@pytest.mark.parametrize("case", NUMBERED)
def test_columns_of_frames_may_be_numbers(case, tmp_path):
    text, label = NUMBERED[case]
    rows = {"id": [7, 8], text: ["a cat", "a dog"], label: ["x", "y"]}
    given = Given(pandas.DataFrame(rows), label, None, (["a sun"], ["x"]), (str(text), None))
    data = python_tables.data_of(given, {})
    for name, content in data.files.items():
        storage.write_bytes(str(tmp_path / name), content)
    columns = {name: data.settings[f"{name}_column"] for name in ("text_a", "label")}
    task = own_task(columns["text_a"], None, columns["label"], extension="csv")
    found = read_examples(task, str(tmp_path), ["train", "dev"])
    assert found["train"].text_a == ["a cat", "a dog"] and found["train"].labels == ["x", "y"]
    assert found["dev"].text_a == ["a sun"] and found["dev"].labels == ["x"]


@pytest.mark.parametrize(
    "value", [["b", "a"], ("a", "b"), {"a", "b"}, frozenset("ab"), {"a": 1, "b": 2}.keys(),
              np.array(["b", "a"])]
)  # fmt: skip
def test_several_labels_are_in_anything_that_holds_them(value):
    assert python_tables.table_of(["x"], [value], sets=True)[1] == [["x", "a|b"]]


def test_a_file_in_the_place_of_the_folder(tiny_base_folder, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    settings = {"base_model": str(tiny_base_folder), "output_dir": tmp_path / "notes.txt"}
    with raises_code("unavailable", "output_dir", "notes.txt"):
        abt.train(["a", "b"], ["c", "d"], **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_arguments_without_effect_are_named(tiny_base_folder, caplog):
    with raises_code("invalid", "class_weights"):
        abt.train(
            *sentences(32),
            class_weights={"worst": 2},
            top_k=3,
            init_from="",
            base_model=str(tiny_base_folder),
            **SMALL,
        )
    said = [record.getMessage() for record in caplog.records]
    assert "top_k=3 has no effect without tuning=top_k." in said
    assert "init_from is empty, and counts as not given." in said


def test_a_flag_may_be_a_dict(tiny_base_folder):
    texts, labels = sentences(32)
    with raises_code("invalid", "class_weights", "'worst=2'"):
        abt.train(
            texts, labels, class_weights={"worst": 2}, base_model=str(tiny_base_folder), **SMALL
        )
    with raises_code("not_found", "'of/a'"):
        abt.train(
            texts,
            labels,
            fuse={"a": "of/a", "b": "of/b"},
            tuning="fusion",
            **SMALL,
            base_model=str(tiny_base_folder),
        )
