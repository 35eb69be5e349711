"""`--tuning=fusion`: trained, taken up, evaluated, exported; members stay as they are."""

import csv
import dataclasses
import hashlib
import json
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.adapters.methods.fusion import FusionModule
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.analyze import main as analyze_main
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import contents, load_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests import processes
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

ANALYSIS = "adapter_bert_tf.analysis.composition.fusion"
MEMBER = ("--adapter=pfeiffer", "--adapter_size=4", "--notrain_layer_norm", "--num_train_epochs=1")
FUSION = ("--tuning=fusion", "--num_train_epochs=2", "--learning_rate=5e-3")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC", rows=32)


@pytest.fixture(scope="module")
def members(mrpc, tiny_base_folder, tmp_path_factory):
    """The adapters of two seeds; tests must not write to them."""
    out = tmp_path_factory.mktemp("members")
    return [
        train(mrpc, tiny_base_folder, out / str(seed), *MEMBER, f"--seed={seed}") / "adapter"
        for seed in range(2)
    ]


def fuse(members):
    """An adapter, and the folder of the run that trained the other."""
    return f"--fuse=a={members[0]},b={members[1].parent}"


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def fused(mrpc, members, tiny_base_folder, tmp_path_factory):
    """The folder of a fusion's run; tests must not write to it."""
    before = [digests(member) for member in members]
    out = tmp_path_factory.mktemp("fused") / "out"
    done = ("--do_eval", "--do_predict", "--do_export")
    train(mrpc, tiny_base_folder, out, *FUSION, fuse(members), *done)
    assert [digests(member) for member in members] == before
    return out


def test_what_it_leaves(fused, members):
    saved = load_adapter(str(fused / "adapter"))
    assert [member.name for member in saved.members] == ["a", "b"]
    for member, folder in zip(saved.members, members, strict=True):
        copies = digests(fused / "adapter" / "members" / member.config["sha256"][:16])
        assert copies["adapter.safetensors"] == digests(folder)["adapter.safetensors"]
        own = load_adapter(str(folder)).weights
        for name, value in own.items():
            np.testing.assert_array_equal(member.weights[name], value)
    for name, value in saved.weights.items():
        if name.startswith("members/"):
            stem = name.replace("members/", "adapters/")
            expected = [member.weights[stem] for member in saved.members]
            np.testing.assert_array_equal(value, np.stack(expected))
    value = saved.weights["fusion/layer_1/feed_forward/value_kernel"]
    assert not np.array_equal(value, np.eye(16)) and np.abs(value - np.eye(16)).max() < 0.5
    record = json.loads((fused / "run.json").read_text())
    assert record["members"] == saved.config["members"]
    assert record["parameters"]["trained"] == 2 * (3 * 16**2 + 2 * 16) + 34


def apply(mrpc, base, adapter, out, *more):
    asked = ("--task_name=mrpc", f"--data_dir={mrpc}", "--do_eval", f"--output_dir={out}")
    return command(*asked, f"--base_model={base}", f"--adapter_dir={adapter}", *more)


def test_nothing_outside_its_folder_is_read(mrpc, fused, tiny_base_folder, tmp_path):
    adapter = shutil.copytree(fused / "adapter", tmp_path / "moved")
    assert apply(mrpc, tiny_base_folder, adapter, tmp_path / "out", "--do_predict") is None
    for name in ("MRPC.tsv", "test_results.tsv"):
        assert (tmp_path / "out" / name).read_bytes() == (fused / name).read_bytes()


def test_the_saved_model_computes_the_same(mrpc, fused):
    served = tf.saved_model.load(str(fused / "saved_model")).signatures["serving_default"]
    rows = [line.split("\t")[3:] for line in (mrpc / "test.tsv").read_text().splitlines()[1:]]
    texts = [tf.constant(column) for column in zip(*rows, strict=True)]
    found = served(text_a=texts[0], text_b=texts[1])["probabilities"].numpy()
    np.testing.assert_allclose(found, np.loadtxt(fused / "test_results.tsv"), atol=1e-5)


def test_it_is_taken_up_to_the_same_bytes(mrpc, members, fused, tiny_base_folder, tmp_path, capsys):
    """Also with the members elsewhere; other members are another run."""
    out = shutil.copytree(fused, tmp_path / "out")
    (out / "run.json").unlink()
    shutil.rmtree(out / "adapter")
    again = ("--do_eval", "--do_predict", "--do_export")
    error = try_to_train(
        mrpc, tiny_base_folder, out, *FUSION, f"--fuse=a={members[1]},b={members[0]}", *again
    )
    assert "another run" in error
    train(mrpc, tiny_base_folder, out, *FUSION, fuse(members), *again)
    names = ("adapter_config.json", "adapter.safetensors", "members")
    assert digests(out / "adapter").keys() == digests(fused / "adapter").keys()
    for name, digest in digests(out / "adapter").items():
        if name.endswith(".safetensors") or name.startswith(names[2]):
            assert digest == digests(fused / "adapter")[name], name


def test_members_may_be_trained_too(mrpc, members, tiny_base_folder, tmp_path):
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *FUSION, fuse(members), "--train_members")
    saved = load_adapter(str(out / "adapter"))
    for member, folder in zip(saved.members, members, strict=True):
        own = load_adapter(str(folder)).weights
        moved = [n for n, v in member.weights.items() if not np.array_equal(v, own[n])]
        assert moved and all(name.startswith("adapters/") for name in moved)
        assert member.config["metric"] is None


@pytest.mark.slow
def test_training_goes_on_from_a_fusion(mrpc, fused, tiny_base_folder, tmp_path):
    start = f"--init_from={fused / 'adapter'}"
    out = train(mrpc, tiny_base_folder, tmp_path / "out", start, "--num_train_epochs=1")
    theirs, ours = (load_adapter(str(folder / "adapter")) for folder in (fused, out))
    assert ours.config["members"] == theirs.config["members"]
    assert ours.config["method"] == "fusion"
    name = "fusion/layer_0/feed_forward/query_kernel"
    assert not np.array_equal(ours.weights[name], theirs.weights[name])


@pytest.mark.slow
def test_a_sweep_over_what_is_fused(mrpc, members, tiny_base_folder, tmp_path):
    (tmp_path / "grid.yaml").write_text(f"fuse: [a={members[0]}, a={members[1]}]\n")
    sweep = (f"--sweep={tmp_path}/grid.yaml", "--do_eval", "--tuning=fusion")
    train(mrpc, tiny_base_folder, tmp_path / "out", *sweep)
    assert len((tmp_path / "out" / "sweep.csv").read_text().splitlines()) == 3


@pytest.mark.slow
def test_a_fusion_of_a_sweep(mrpc, members, tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    sweep = ("--num_trials=2", "--do_eval")
    train(mrpc, tiny_base_folder, out, *FUSION, fuse(members), *sweep)
    assert len(load_adapter(str(out / "adapter")).members) == 2


REFUSED = {
    "no members": ((), "needs --fuse=DIR1,DIR2"),
    "no names": (("--fuse=,",), "names adapter directories, separated by commas"),
    "no folder": (("--fuse=a=,b={0}",), "names adapter directories"),
    "a folder that is not there": (("--fuse=a={0},nowhere",), "'nowhere'"),
    "twice the same name": (("--fuse={0},{1}",), "different names"),
    "a fusion": (("--fuse=a={0},f={fused}",), "is a fusion"),
    "also a start": (("--fuse={0}", "--init_from={1}"), "--fuse starts a new fusion"),
    "members of other sizes": (
        ("--fuse=a={0},w={wide}",),
        "bottleneck_size: 4 and 5",
    ),
    "LayerNorms of their own": (("--fuse=n={norms},m={norms2}",), "--notrain_layer_norm"),
    "parallel": (("--fuse=p={parallel}",), "--fuse: The member 'p' is a parallel adapter"),
    "layers left out": (("--fuse=a={0}", "--adapter_drop=1"), "--adapter_drop=0"),
    "no place": (
        ("--fuse=a={0}", "--adapter_dir={fused}/members/new"),
        "among the members of the fusion",
    ),
    "no adapters": (("--fuse=h={head}",), "has no bottleneck adapters"),
    "another method": (("--fuse=l={lora}",), "'l' is: LoRA"),
}


@pytest.fixture(scope="module")
def others(fused, tiny_base_folder, tmp_path_factory):
    """Adapters that cannot be fused; not trained, but moved, so that no two are alike."""
    out, small = tmp_path_factory.mktemp("others"), dataclasses.replace(PRESETS["pfeiffer"])
    frozen = Tuning(train_layer_norm=False)
    kinds = {
        "wide": (dataclasses.replace(small, bottleneck_size=5), frozen),
        "norms": (small, Tuning()),
        "norms2": (small, Tuning()),
        "parallel": (PRESETS["parallel"], frozen),
        "head": (None, Tuning("head")),
        "lora": (PRESETS["lora"], frozen),
    }
    model = AdapterModel(load_base(tiny_base_folder))
    for seed, (name, (config, tuning)) in enumerate(kinds.items()):
        made = model.add_adapter(name, ["0", "1"], config, tuning=tuning)
        for variable in made.trainable_variables:
            variable.assign_add(np.full(variable.shape, 0.1 * seed, np.float32))
        model.save_adapter(name, out / name)
    return {name: out / name for name in kinds} | {"fused": fused / "adapter"}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, mrpc, members, others, tiny_base_folder, tmp_path):
    flags, said = REFUSED[case]
    flags = [flag.format(*members, **others) for flag in flags]
    error = try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *FUSION, *flags)
    assert error and said in error, error
    assert not (tmp_path / "out").exists()


def test_members_of_another_base_are_refused(mrpc, members, tmp_path):
    from tests import support

    support.write_google(tmp_path / "base", support.random_weights(seed=5))
    error = try_to_train(mrpc, tmp_path / "base", tmp_path / "out", *FUSION, fuse(members))
    assert "--fuse: the member 'a': The adapter was trained on another base" in error


@pytest.mark.parametrize("flags", [("--do_eval",), ("--do_eval", "--do_export")])
def test_nothing_is_written_among_its_members(flags, mrpc, fused, tiny_base_folder):
    adapter = fused / "adapter"
    error = apply(mrpc, tiny_base_folder, adapter, adapter / "members" / "run", *flags)
    assert "among the members of the fusion" in error
    assert not (adapter / "members" / "run").exists()


def test_layers_of_a_saved_fusion_are_not_left_out(mrpc, fused, tiny_base_folder, tmp_path):
    error = apply(mrpc, tiny_base_folder, fused / "adapter", tmp_path / "out", "--adapter_drop=1")
    assert "kind 'fusion'" in error and "--adapter_drop=0" in error
    assert not (tmp_path / "out").exists()


def test_a_fusion_that_is_neither_there_nor_trained(mrpc, members, tiny_base_folder, tmp_path):
    asked = ("--task_name=mrpc", f"--data_dir={mrpc}", "--do_eval", f"--output_dir={tmp_path}/out")
    weights = (*base_flags(tiny_base_folder), "--max_seq_length=16")
    error = command(*asked, *weights, "--tuning=fusion", fuse(members))
    assert "there is no fusion to apply. Add --do_train" in error


def look(mrpc, base, *arguments):
    """`analyze fusion` in this process; the message with which it ends, or None."""
    data = ("--task_name=mrpc", f"--data_dir={mrpc}", f"--base_model={base}", "--do_eval")
    return command(*data, *arguments, main=lambda words: run_job(ANALYSIS, words))


LOOKS = {
    "at an adapter": (("--output_dir={adapter}",), "is an adapter directory, in which nothing"),
    "at its members": (("--output_dir={adapter}/members",), "among the members of the fusion"),
    "into a file": (("--output_dir={here}/file",), "is a file, not a folder"),
    "over a folder": (("--output_dir={here}/taken",), "is a folder, and a run writes a file"),
    "and trains": (("--output_dir={here}/out", "--do_train"), "does nothing else. Received: --do_"),
    "and replaces": (("--output_dir={here}/out", "--overwrite"), "Received: --overwrite"),
}


@pytest.mark.parametrize("case", LOOKS)
def test_where_it_cannot_look(case, mrpc, fused, tiny_base_folder, tmp_path):
    flags, said = LOOKS[case]
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken" / "fusion_attention.svg").mkdir(parents=True)
    before = digests(fused)
    flags = [flag.format(adapter=fused / "adapter", here=tmp_path) for flag in flags]
    error = look(mrpc, tiny_base_folder, f"--adapter_dir={fused}/adapter", *flags)
    assert error and said in error, error
    assert digests(fused) == before and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_looking_again_leaves_the_same(mrpc, fused, tiny_base_folder, tmp_path, capsys):
    asked = (f"--adapter_dir={fused}/adapter", f"--output_dir={tmp_path}/out")
    assert look(mrpc, tiny_base_folder, *asked, "--dry_run") is None
    assert "can be looked at: fusion of 2" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert look(mrpc, tiny_base_folder, *asked) is None
    first = digests(tmp_path / "out")
    assert look(mrpc, tiny_base_folder, *asked) is None
    assert digests(tmp_path / "out") == first
    assert "Replaced" not in capsys.readouterr().out
    (tmp_path / "out" / "fusion_attention.csv").write_text("mine")
    assert look(mrpc, tiny_base_folder, *asked) is None
    assert f"Replaced: {tmp_path}/out/fusion_attention.csv\n" in capsys.readouterr().out


def analyze(*arguments):
    """Runs `python -m adapter_bert_tf.analysis` in a process of its own."""
    return processes.run([sys.executable, "-m", "adapter_bert_tf.analysis", *arguments])


def test_whom_it_listens_to(mrpc, fused, tiny_base_folder, tmp_path):
    """CSV and pictures; the shares are those that the layers compute, and sum to one."""
    data = ("--task_name=mrpc", f"--data_dir={mrpc}", f"--base_model={tiny_base_folder}")
    asked = (*data, "--do_eval", f"--adapter_dir={fused}/adapter", f"--output_dir={tmp_path}/out")
    assert command(*asked, main=lambda words: run_job(ANALYSIS, words)) is None
    table = list(csv.DictReader((tmp_path / "out" / "fusion_attention.csv").open()))
    keys = [(row["target"], row["layer"], row["sublayer"], row["member"]) for row in table]
    assert keys == [("mrpc", i, "feed_forward", name) for i in "01" for name in "ab"]
    shares = np.array([float(row["attention"]) for row in table]).reshape(2, 2)
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(shares, _mean_shares(mrpc, fused, tiny_base_folder), atol=1e-5)
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert (tmp_path / "out" / f"fusion_attention.{kind}").read_bytes().startswith(start)

    tables = [str(tmp_path / "out" / "fusion_attention.csv")] * 2
    assert analyze_main(["fusion_map", *tables, f"--output_dir={tmp_path}/map"]) == 0
    assert (tmp_path / "map" / "fusion_map.svg").exists()


def test_a_map_of_other_tables(mrpc, tmp_path, capsys):
    for table, said in (
        (mrpc / "dev.tsv", "is not a table of"),
        ("no.csv", "no file 'no.csv'"),
    ):
        assert analyze_main(["fusion_map", str(table), f"--output_dir={tmp_path}/none"]) == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_the_analysis_as_a_command(mrpc, fused, members, tiny_base_folder, tmp_path):
    data = ("--task_name=mrpc", f"--data_dir={mrpc}", f"--base_model={tiny_base_folder}")
    out = f"--output_dir={tmp_path}/out"
    done = analyze("fusion", *data, f"--adapter_dir={fused}/adapter", out)
    assert done.returncode == 0 and (tmp_path / "out" / "fusion_attention.png").exists()
    out = f"--output_dir={tmp_path}/none"
    done = analyze("fusion", *data, f"--adapter_dir={members[0]}", out)
    assert done.returncode == 1 and "is not a fusion" in done.stderr
    assert not (tmp_path / "none").exists()


def _mean_shares(mrpc, fused, base):
    """The same, row by row and without batches."""
    base, saved = load_base(base), load_adapter(str(fused / "adapter"))
    encoder = TextEncoder(base.vocabulary, 16)
    config, bare = contents.adapter_of(saved.config), base.build_encoder()
    total = [[], []]
    for line in (mrpc / "dev.tsv").read_text().splitlines()[1:]:
        texts = line.split("\t")[3:]
        found = []
        module = FusionModule(
            config, saved.weights, observe=lambda at, shares, found=found: found.append(shares)
        )
        bare(encoder.inputs(*[[text] for text in texts]), module=module)
        for layer, shares in enumerate(found):
            total[layer].extend(shares.numpy()[0])
    return [np.mean(shares, 0) for shares in total]
