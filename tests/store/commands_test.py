"""`python -m adapter_bert_tf.store`, and averages."""

import shutil

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.store.combining.combine import average
from adapter_bert_tf.store.directory import SavedAdapter
from tests.refusals import raises_code
from tests.support import GOLDEN

HUB = GOLDEN.parent / "adapterhub"


@pytest.fixture
def folder(tiny_base_folder, tmp_path):
    """A folder with the adapters `a/adapter`, `b/adapter` and, of another size, `c`."""
    model = AdapterModel(load_base(tiny_base_folder))
    for name, place, size in (("a", "a/adapter", 4), ("b", "b/adapter", 4), ("c", "c", 2)):
        model.add_adapter(name, ["0", "1"], AdapterConfig(size))
        model.save_adapter(
            name, str(tmp_path / place), {"name": "f1", "value": 0.5, "split": "dev"}
        )
    return tmp_path


def test_list(folder, capsys):
    assert main(["list", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["task", "a", "b", "c", "3"]
    assert "f1 0.5000 (dev)" in lines[1] and lines[1].endswith("a/adapter")
    (folder / "b" / "adapter" / "adapter.safetensors").write_bytes(b"")
    assert main(["list", str(folder)]) == 1
    assert "3 adapters, 1 refused" in capsys.readouterr().out
    assert main(["list", str(HUB / "houlsby")]) == 0
    assert "`import` reads it" in capsys.readouterr().out


def test_show(folder, capsys):
    assert main(["show", str(folder / "c")]) == 0
    shown = capsys.readouterr().out
    assert "# c: a BERT adapter" in shown
    assert shown.index("layer_0/feed_forward") < shown.index("layer_1/attention")
    assert "adapters/layer_0/attention" in shown and "82 parameters" in shown


def test_verify(folder, tiny_base_folder, capsys):
    both = [str(folder / "a/adapter"), str(folder / "c")]
    assert main(["verify", *both, str(folder / "a")]) == 0  # The last is that of a run.
    assert main(["verify", *both, f"--base_model={tiny_base_folder}"]) == 0
    assert main(["verify", *both, f"--base_model={HUB / 'base'}"]) == 1
    assert "refused" in capsys.readouterr().out
    assert main(["verify", str(folder / "none")]) == 1
    said = "is missing. Train an adapter, or give the directory of another.\n"
    assert said in capsys.readouterr().out
    assert main(["show", str(folder / "none")]) == 1
    assert said in capsys.readouterr().err
    assert main(["verify", str(HUB / "houlsby")]) == 1
    assert "`import` reads it" in capsys.readouterr().out


def test_average(folder, capsys):
    places = [str(folder / name / "adapter") for name in "ab"]
    assert main(["average", *places, f"--output={folder / 'mean'}"]) == 0
    first, second, mean = map(load_adapter, [*places, str(folder / "mean")])
    assert (mean.config["task"], mean.config["metric"]) == ("a+b", None)
    for name, value in mean.weights.items():
        expected = (first.weights[name] + second.weights[name]) / 2
        np.testing.assert_allclose(value, expected, atol=1e-7)
    with raises_code("mismatch", "'adapter'"):
        average([first, load_adapter(str(folder / "c"))])
    with raises_code("mismatch", "'inputs'"):
        pairs = first.config | {"inputs": {"texts": 2, "max_seq_length": 16}}
        average([first, SavedAdapter(pairs, first.weights)])
    assert main(["average", *places, f"--output={places[0]}"]) == 1
    for theirs, said in (({}, None), ({"split_seed": 1}, {"parts": "several"})):
        two = SavedAdapter(second.config | theirs, second.weights)
        assert average([first, two]).config.get("fold") == said
    with raises_code("invalid", "at least two"):
        average([first])
    assert main(["average", places[0], f"{places[0]}/", f"--output={folder / 'same'}"]) == 1
    assert "each adapter of an average once" in capsys.readouterr().err


def test_other_ways_to_combine(folder):
    places = [str(folder / name / "adapter") for name in "ab"]
    first, second = map(load_adapter, places)
    added = ["--method=sum", "--shares=0.5,2", f"--output={folder / 'sum'}"]
    assert main(["average", *places, *added]) == 0
    combined = load_adapter(str(folder / "sum")).weights
    for name, value in combined.items():
        a, b = first.weights[name], second.weights[name]
        is_adapter = name.startswith("adapters/")  # Heads and LayerNorms get the weighted mean.
        expected = (0.5 * a + 2 * b) / (1 if is_adapter else 2.5)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)
    trimmed = average([first, second], "ties", density=0.25).weights
    name = next(name for name in trimmed if name.endswith("down_kernel"))
    assert 0 < np.count_nonzero(trimmed[name]) <= trimmed[name].size / 2 + 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "median"}, "method"),
        ({"shares": (1.0,)}, "2 numbers"),
        ({"shares": (1.0, -1.0)}, "not 0"),
        ({"density": 0.0}, "density"),
    ],
)
def test_wrong_options_of_an_average(options, said, folder):
    adapters = [load_adapter(str(folder / name / "adapter")) for name in "ab"]
    with raises_code("invalid", said):
        average(adapters, **options)


def test_adapters_of_tasks_beside_one_of_one_task_are_not_its_own(folder, tmp_path, capsys):
    one = tmp_path / "one"
    shutil.copytree(folder / "a" / "adapter", one)
    assert main(["verify", str(one)]) == 0
    shutil.copytree(folder / "b" / "adapter", one / "tasks" / "b")
    assert main(["verify", str(one)]) == 1
    assert "tasks' does not belong to this adapter" in capsys.readouterr().out


def test_import_and_export(tmp_path, capsys):
    ours, theirs, base = tmp_path / "ours", tmp_path / "theirs", f"--base_model={HUB / 'base'}"
    assert main(["import", str(HUB / "pfeiffer"), f"--output={ours}", base]) == 0
    assert "Trained with" not in (ours / "README.md").read_text()  # No command did.
    assert main(["export", str(ours), f"--output={theirs}", base]) == 0
    again = ["import", str(theirs), f"--output={tmp_path / 'again'}", base, "--task=tsv"]
    assert main([*again, "--labels=no,yes"]) == 1
    assert "Leave out the other labels" in capsys.readouterr().err
    assert main(again) == 0
    assert load_adapter(str(tmp_path / "again")).config["task"] == "tsv"
    np.testing.assert_equal(
        load_adapter(str(ours)).weights, load_adapter(str(tmp_path / "again")).weights
    )
    nothing = ["import", str(tmp_path / "nothing"), f"--output={tmp_path / 'tf1'}", "--task=a"]
    assert main(nothing) == 1
    assert "There is no" in capsys.readouterr().err
    checkpoint = [
        "import",
        str(GOLDEN / "adapter_model.ckpt"),
        f"--output={tmp_path / 'tf1'}",
        f"--base_model={GOLDEN / 'bert_model.ckpt'}",
    ]
    assert main(checkpoint) == 1
    assert "add --task=NAME" in capsys.readouterr().err
    assert main([*checkpoint, "--task=mnli", "--labels=a,b,c"]) == 0
    assert load_adapter(str(tmp_path / "tf1")).config["labels"] == ["a", "b", "c"]


def test_ones_own_adapter_is_not_imported(folder, minilm, capsys):
    output = f"--output={folder}/again"
    assert main(["import", str(folder / "a" / "adapter"), output]) == 1
    assert "is an adapter of this package already" in capsys.readouterr().err
    (folder / "part").mkdir()  # Of AdapterHub's files the weights are missing.
    shutil.copy(HUB / "houlsby" / "adapter_config.json", folder / "part")
    for more in ([], ["--task=mrpc", "--labels=a,b"]):
        assert main(["import", str(folder / "part"), output, *more]) == 1
        assert "no head_config.json" in capsys.readouterr().err
