"""`--init_from`: training begins from a saved adapter, which it only reads."""

import hashlib
import json
import re
import shutil
import types

import numpy as np
import pytest
import safetensors.numpy
from absl import flags

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.absl_flags import config_of, define_flags
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.jobs import questions
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.run.checks import split_history
from adapter_bert_tf.run.init_from import InitialAdapter, load_initial_adapter, recorded_settings
from adapter_bert_tf.run.method import from_config
from adapter_bert_tf.store import SavedAdapter, load_adapter
from adapter_bert_tf.store.combining.combine import MIXED_SPLITS
from adapter_bert_tf.training.tuning import Tuning
from tests import support
from tests.refusals import raises_code
from tests.runners.squad_test import TINY, write
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

pytestmark = pytest.mark.long

STILL = ["--learning_rate=1e-9", "--num_train_epochs=0.25"]  # Two steps that move next to nothing.


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def parent(mrpc, tiny_base_folder, tmp_path_factory):
    """The output folder of a run that has learned its task, with an unusual method."""
    out = tmp_path_factory.mktemp("parent") / "out"
    method = ["--adapter=pfeiffer", "--adapter_size=6", "--train_pooler", "--learning_rate=1e-2"]
    return train(mrpc, tiny_base_folder, out, *method, "--do_eval", "--num_train_epochs=40")


def digests(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def results(out):
    lines = (out / "eval_results.txt").read_text().splitlines()
    found = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    return {name: value for name, value in found.items() if name != "global_step"}


def weights(out):
    return safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")


def test_it_goes_on_where_the_parent_ended(mrpc, parent, tiny_base_folder, tmp_path, capsys):
    base = shutil.copytree(tiny_base_folder, tmp_path / "base")
    before = digests(parent), digests(base)
    start = f"--init_from={parent}/adapter"
    out = train(mrpc, base, tmp_path / "out", "--do_eval", start, *STILL)
    assert (
        f"Starting from {parent}/adapter, of 'mrpc': adapters, LayerNorms, pooler, head."
        in capsys.readouterr().out
    )
    assert results(out) == pytest.approx(results(parent), abs=1e-4)
    row = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["loss"] < 0.3  # It has learned; what begins afresh is at 0.69.
    ours, theirs = (load_adapter(str(folder / "adapter")).config for folder in (out, parent))
    assert (ours["adapter"], ours["tuning"]) == (theirs["adapter"], theirs["tuning"])
    assert (digests(parent), digests(base)) == before
    train(mrpc, base, out, "--do_eval", start, *STILL)
    assert "holds the results of this very run" in capsys.readouterr().out
    repeated = f"--config={out}/run.json"
    again = tmp_path / "again"
    assert command(repeated, f"--output_dir={again}") is None
    assert (again / "adapter" / "adapter.safetensors").read_bytes() == (
        out / "adapter" / "adapter.safetensors"
    ).read_bytes()


def write_table(folder, kind):
    """A table of two labels, or of a score far from zero."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    words = rng.choice(support.WORDS[:20], (64, 4))
    number = [3000 + 400 * (row == "cat").sum() + 10 * i % 7 for i, row in enumerate(words)]
    last = number if kind == "score" else ["many" if "cat" in row else "none" for row in words]
    rows = [f"{' '.join(row)},{y}" for row, y in zip(words, last, strict=True)]
    for name in ("train", "dev"):
        (folder / f"{name}.csv").write_text("\n".join(["text,y", *rows]) + "\n")
    return folder


def train_table(data, base, out, *more):
    reads = ["--task_name=tsv", f"--data_dir={data}", "--text_a_column=text", "--label_column=y"]
    trains = ["--do_train", "--do_eval", "--max_seq_length=16", "--train_batch_size=8"]
    error = command(*reads, *base_flags(base), f"--output_dir={out}", *trains, *more)
    assert error is None, error
    return out


@pytest.mark.slow
def test_scores_are_in_their_units_from_the_first_step_and_after_an_interruption(
    tiny_base_folder, tmp_path, capsys
):
    data = write_table(tmp_path / "table", "score")
    method = ["--regression", "--adapter_size=4"]
    learns = ["--learning_rate=1e-2", "--num_train_epochs=3"]
    first = train_table(data, tiny_base_folder, tmp_path / "parent", *method, *learns)
    start = ["--regression", f"--init_from={first}/adapter"]
    out = train_table(data, tiny_base_folder, tmp_path / "out", *start, *STILL)
    assert results(out) == pytest.approx(results(first), rel=1e-3)
    for name, value in weights(first).items():
        np.testing.assert_allclose(weights(out)[name], value, rtol=1e-4, atol=1e-4)
    goes_on = [*start, "--num_train_epochs=1", "--save_checkpoints_steps=4"]
    out = train_table(data, tiny_base_folder, tmp_path / "stopped", *goes_on)
    whole = weights(out)
    for path in (out / "run.json", out / "checkpoints" / "ckpt-8.index"):
        path.unlink()
    shutil.rmtree(out / "adapter")
    capsys.readouterr()
    train_table(data, tiny_base_folder, out, *goes_on)
    assert "Resuming from step 4" in capsys.readouterr().out
    np.testing.assert_equal(weights(out), whole)


def test_a_head_of_other_labels_is_fresh(mrpc, parent, tiny_base_folder, tmp_path, capsys):
    data = write_table(tmp_path / "table", "class")
    start = f"--init_from={parent}/adapter"
    out = train_table(data, tiny_base_folder, tmp_path / "out", start, *STILL)
    printed = capsys.readouterr().out
    assert (
        "adapters, LayerNorms, pooler. The head is fresh: there 2 labels (0, 1), here 2 labels "
        "(many, none)." in printed
    )
    ours, theirs = weights(out), weights(parent)
    for name, value in theirs.items():
        same = np.allclose(ours[name], value, atol=1e-5)
        assert same is (name != "head/kernel" and name != "head/bias"), name


@pytest.mark.slow
def test_another_content_is_another_run(mrpc, parent, tiny_base_folder, tmp_path):
    folder = shutil.copytree(parent / "adapter", tmp_path / "adapter")
    out, start = tmp_path / "out", f"--init_from={folder}"
    train(mrpc, tiny_base_folder, out, start, *STILL)
    shutil.rmtree(folder)
    model = AdapterModel(load_base(tiny_base_folder))
    model.load_adapter(parent / "adapter")
    model.model("mrpc").head.bias.assign([1.0, 0.0])
    model.save_adapter("mrpc", folder)
    error = try_to_train(mrpc, tiny_base_folder, out, start, *STILL)
    assert "a run whose init_from had another content" in error
    error = try_to_train(mrpc, tiny_base_folder, out, *STILL)
    assert f"--init_from: '{folder}' there, None here" in error


@pytest.mark.slow
def test_trials_begin_from_it_too(mrpc, parent, tiny_base_folder, tmp_path, capsys):
    more = ["--do_eval", "--do_predict", f"--init_from={parent}/adapter", "--num_trials=2", *STILL]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *more)
    assert capsys.readouterr().out.count("Starting from") == 2
    assert (out / "MRPC.tsv").exists()
    for seed in range(2):
        assert results(out / f"seed={seed}") == pytest.approx(results(parent), abs=1e-4)


def run_squad(*arguments):
    values = flags.FlagValues()
    define_flags(Command.SQUAD, values)
    values(["run_squad", *map(str, arguments)])
    questions.run(config_of(values))


@pytest.mark.slow
def test_questions_begin_from_questions_and_from_pairs(parent, tiny_base_folder, tmp_path, capsys):
    path = write(tmp_path, "train")
    shared = ["--do_train", "--do_eval", f"--train_file={path}", f"--predict_file={path}"]
    shared += [*base_flags(tiny_base_folder), *TINY]
    first, out = tmp_path / "first", tmp_path / "out"
    start = f"--init_from={parent}/adapter"
    learns = ["--num_train_epochs=2", "--learning_rate=1e-2"]
    run_squad(*shared, *learns, start, f"--output_dir={first}")
    assert "The head is fresh: there 2 labels (0, 1), here span." in capsys.readouterr().out
    start = f"--init_from={first}/adapter"
    still = ["--learning_rate=1e-9", "--num_train_epochs=2"]
    run_squad(*shared, *still, start, f"--output_dir={out}")
    assert "of 'squad': adapters, LayerNorms, head." in capsys.readouterr().out
    for name, value in weights(first).items():
        np.testing.assert_allclose(weights(out)[name], value, atol=1e-5)


def parsed(*arguments):
    values = flags.FlagValues()
    define_flags(Command.CLASSIFIER, values)
    values(["run_classifier", *arguments])
    return config_of(values)


@pytest.fixture(scope="module")
def starts(tiny_base_folder, tmp_path_factory):
    """Adapter directories by name, of three methods."""
    folder = tmp_path_factory.mktemp("starts")
    model = AdapterModel(load_base(tiny_base_folder))
    sized = AdapterConfig(8, layers=[1])
    for name, config, tuning in (
        ("houlsby", sized, Tuning()),
        ("layers", AdapterConfig(8, layer_sizes={0: 3}), Tuning()),
        ("norms", None, Tuning("layer_norm")),
        ("top", None, Tuning("top_k", top_k=1)),
    ):
        model.add_adapter(name, ["0", "1"], config, tuning=tuning)
        model.save_adapter(name, folder / name)
    model.save_adapter("top", folder / "run" / "adapter")
    (folder / "same.json").write_text(json.dumps({"bottleneck_size": 8, "layers": [1]}))
    layers = json.dumps({"bottleneck_size": 8, "layer_sizes": {"0": 3}})
    (folder / "layers.json").write_text(layers)
    (folder / "other.json").write_text(json.dumps({"bottleneck_size": 9}))
    return folder


FITS = [
    ("houlsby",),
    ("houlsby", "--tuning=adapters", "--adapter=houlsby", "--adapter_size=8"),
    ("houlsby", "--adapter_layers=1", "--train_layer_norm", "--adapter={}/same.json"),
    ("houlsby", "--adapter={}/other.json", "--adapter_size=8"),
    ("layers", "--adapter={}/layers.json"),
    ("layers", "--adapter=houlsby"),
    ("norms", "--tuning=layer_norm"),
    ("top", "--tuning=top_k", "--top_k=1"),
]
DIFFERS = [
    ("houlsby", "--tuning=full"),
    ("houlsby", "--adapter_size=16"),
    ("houlsby", "--adapter_layers=0"),
    ("houlsby", "--adapter_init_scale=0.5"),
    ("houlsby", "--adapter=pfeiffer"),
    ("houlsby", "--adapter={}/other.json"),
    ("houlsby", "--notrain_layer_norm"),
    ("houlsby", "--train_pooler"),
    ("layers", "--adapter_size=8"),
    ("layers", "--adapter={}/layers.json", "--adapter_size=3"),
    ("norms", "--tuning=adapters"),
    ("norms", "--adapter_size=8"),
    ("top", "--top_k=2"),
]


def method_of(starts, name, arguments, base_folder):
    arguments = [argument.format(starts) for argument in arguments]
    run_flags = parsed(*arguments, "--do_train", "--output_dir=o", f"--init_from={starts}/{name}")
    start = load_initial_adapter(run_flags)
    return start, from_config.method_from_config(
        run_flags.method, run_flags.given, load_base(base_folder), None, start
    )


@pytest.mark.parametrize("case", FITS, ids=" ".join)
def test_the_method_is_the_adapters(case, starts, tiny_base_folder):
    name, *arguments = case
    start, found = method_of(starts, name, arguments, tiny_base_folder)
    config = start.saved.config
    parts = found.adapter.to_dict() if found.adapter else None
    assert json.loads(json.dumps(parts)) == config["adapter"]
    assert found.tuning.method == config["tuning"]["method"]


@pytest.mark.parametrize("case", DIFFERS, ids=" ".join)
def test_flags_that_say_otherwise_are_named(case, starts, tiny_base_folder):
    name, *arguments = case
    flag = re.sub(r"^--(no)?(\w+).*", r"--\2=", arguments[-1])
    with raises_code("mismatch", flag):
        method_of(starts, name, arguments, tiny_base_folder)


def test_the_base_must_be_the_same(starts, tmp_path):
    support.write_google(tmp_path / "other", support.random_weights(seed=5))
    with raises_code("mismatch", "weights_sha256"):
        method_of(starts, "houlsby", (), str(tmp_path / "other"))


def test_the_folder_of_a_run_has_its_adapter(starts):
    initial = load_initial_adapter(
        parsed("--output_dir=o", "--do_train", f"--init_from={starts}/run")
    )
    assert initial.folder == f"{starts}/run/adapter"


def test_what_it_cannot_begin_from(starts):
    for arguments, message in (
        (["--do_eval", f"--init_from={starts}/top"], "conflict: --do_train"),
        (["--do_train", f"--init_from={starts}/none"], "not_found: --init_from"),
        (["--do_train", f"--init_from={starts}/top", "--adapter_drop=1"], "conflict: top"),
    ):
        with raises_code(message):
            load_initial_adapter(parsed("--output_dir=o", *arguments))


def test_the_digest_is_of_what_counts(starts):
    saved = load_adapter(str(starts / "houlsby"))
    start = InitialAdapter("a", saved)
    elsewhere = type(saved)(saved.config | {"command": "x", "metric": None}, saved.weights)
    other = type(saved)(saved.config | {"labels": ["1", "0"]}, saved.weights)
    assert (
        InitialAdapter("b", elsewhere).sha256 == start.sha256 != InitialAdapter("a", other).sha256
    )


def test_a_record_leaves_the_method_to_the_adapter():
    run_flags = parsed("--output_dir=o", "--init_from=a", "--adapter_size=8")
    left = recorded_settings(run_flags)
    assert left["adapter_size"] == 8 and "tuning" not in left and "adapter" not in left
    assert recorded_settings(parsed("--output_dir=o"))["tuning"] == "adapters"


DIVIDED = {"task": "tsv", "name": "data", "split_seed": 0}
BEGUN = {  # What the adapter and the run say of their data, and whether it is warned of.
    "the same": (DIVIDED, DIVIDED, False),
    "another part": (DIVIDED, DIVIDED | {"split_seed": 1}, True),
    "all of it": (DIVIDED | {"split_seed": None}, DIVIDED, True),
    "another fold": (DIVIDED | {"fold": {"number": 0}}, DIVIDED | {"fold": {"number": 1}}, True),
    "a dev file": (DIVIDED, DIVIDED | {"split_seed": None}, False),
    "another table": (DIVIDED, DIVIDED | {"name": "more", "split_seed": 1}, False),
}


@pytest.mark.parametrize("before", ["start", "member", "one of several"])
@pytest.mark.parametrize("case", BEGUN)
def test_what_it_has_seen_of_the_development_set(case, before, caplog):
    """By whatever way the training begins from it, also later."""
    theirs, ours, warned = BEGUN[case]
    several = {"head": "several", "tasks": [{"task": "mrpc"}, theirs]}
    config = several if before == "one of several" else theirs
    start = None if before == "member" else InitialAdapter("parent", SavedAdapter(config, {}))
    members = [types.SimpleNamespace(name="a", config=theirs)] if before == "member" else []
    task = types.SimpleNamespace(adapter_config=lambda: ours)
    with caplog.at_level("WARNING"):
        split_history.warn([task], start, members)
    assert ("trained on another split of the data of 'data'" in caplog.text) is warned
    said = split_history.adapter_config(task, start, members)
    assert said == (ours | {"fold": MIXED_SPLITS, "split_seed": None} if warned else ours)
    metric = split_history.mark_metric({"name": "f1", "value": 0.5, "split": "dev"}, said)
    assert (metric["split"] == "dev") is not warned
    assert split_history.mark_metric(None, said) is None
