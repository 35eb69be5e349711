"""Fusions in Python: added, called, saved, loaded; and damaged directories, all refused."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.store.schema import seal
from adapter_bert_tf.training.dropout import seed_dropout
from adapter_bert_tf.training.tuning import Tuning
from tests import processes, support
from tests.refusals import raises_code

SMALL = AdapterConfig(4, init_scale=0.5, identity_init=False)
NO_NORMS = Tuning(train_layer_norm=False)
MEMBERS = {"a": ("0", "1"), "b": ("x", "y", "z"), "c": ()}


def noise(variables, seed):
    rng = np.random.default_rng(seed)
    for variable in variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.3)


def new_model(base):
    model = AdapterModel(load_base(base))
    for seed, (name, labels) in enumerate(MEMBERS.items()):
        made = model.add_adapter(name, labels, SMALL, tuning=NO_NORMS)
        noise(made.trainable_variables, seed)
    return model


@pytest.fixture(scope="module")
def model(tiny_base_folder):
    """Three adapters, and two fusions of theirs."""
    model = new_model(tiny_base_folder)
    for seed, name in enumerate(("f", "g")):
        noise(model.add_fusion(name, list(MEMBERS), ("n", "y")).trainable_variables, 7 + seed)
    return model


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    """The directory of `f`; tests must not write to it."""
    folder = tmp_path_factory.mktemp("saved") / "f"
    model.save_adapter("f", folder)
    return folder


@pytest.fixture
def inputs():
    return support.batch(rows=4)


def test_what_is_trained_and_what_is_not(tiny_base_folder, inputs):
    model = new_model(tiny_base_folder)
    made = model.add_fusion("f", ["a", "b"], ("n", "y"))
    before = {name: v.numpy() for name, v in made.named_variables().items()}
    theirs = {name: model(inputs, name).numpy() for name in MEMBERS}
    made.compile("sgd", made.training_loss())
    made.fit(inputs, tf.constant([0, 1, 0, 1]), epochs=3, verbose=0)
    moved = {n for n, v in made.named_variables().items() if not np.array_equal(v, before[n])}
    assert moved and all(name.startswith(("fusion/", "head/")) for name in moved)
    assert {name.split("/")[-1] for name in moved} >= {"query_kernel", "key_kernel", "value_kernel"}
    for name, expected in theirs.items():
        np.testing.assert_array_equal(model(inputs, name), expected)


def test_members_live_on_without_the_fusion(tiny_base_folder, inputs):
    """A fusion has copies: a member that is trained or deleted changes nothing of it."""
    model = new_model(tiny_base_folder)
    model.add_fusion("f", {"first": "a", "second": "b"}, ("n", "y"))
    before = model(inputs, "f").numpy()
    noise(model.model("a").trainable_variables, 3)
    model.delete_adapter("b")
    np.testing.assert_array_equal(model(inputs, "f"), before)
    model.delete_adapter("f")
    assert model.list_adapters() == ["a", "c"]


def test_several_fusions_of_the_same_members(model, inputs):
    found = [model(inputs, name).numpy() for name in ("f", "g")]
    assert np.abs(found[0] - found[1]).max() > 1e-3
    mixed = model(inputs, ["f", "a", "g", "b"]).numpy()
    np.testing.assert_allclose(mixed[0, :2], found[0][0], atol=1e-5)
    np.testing.assert_allclose(mixed[2, :2], found[1][2], atol=1e-5)
    np.testing.assert_allclose(mixed[3, :3], model(inputs, "b")[3], atol=1e-5)


def test_members_and_fusion_in_one_pass(model, inputs):
    found = model.with_members(inputs, "f")
    assert list(found) == ["f", *MEMBERS]
    for name, logits in found.items():
        np.testing.assert_allclose(logits, model(inputs, name), atol=1e-5)
    with raises_code("invalid", "'a'"):
        model.with_members(inputs, "a")


def test_members_with_their_own_poolers_and_heads(tiny_base_folder, inputs):
    """A member keeps its pooler for itself; with equal LayerNorms members bring them along."""
    model = AdapterModel(load_base(tiny_base_folder))
    for seed, name in enumerate("ab"):
        made = model.add_adapter(name, ("0", "1"), SMALL, tuning=Tuning(train_pooler=True))
        norms = [v for n, v in made.named_variables().items() if "/LayerNorm/" in n]
        rest = [v for v in made.trainable_variables if not any(v is norm for norm in norms)]
        noise(norms, 99)
        noise(rest, seed)
    fused = model.add_fusion(
        "f", ["a", "b"], ("n", "y"), tuning=Tuning("fusion", train_pooler=True)
    )
    noise(fused.trainable_variables, 5)
    assert not any("LayerNorm" in variable.name for variable in fused.trainable_variables)
    np.testing.assert_allclose(model(inputs, "f"), fused(inputs), atol=1e-5)
    for name, logits in model.with_members(inputs, "f").items():
        np.testing.assert_allclose(logits, model(inputs, name), atol=1e-5)


@pytest.mark.parametrize("rows", support.seldom([1, 2, 3, 5], (1, 5)))
def test_one_pass_of_members_that_read_their_own_norms(rows, tiny_base_folder):
    """Pfeiffer's read after a LayerNorm: of a share of the rows, the one of that share."""
    model, given = AdapterModel(load_base(tiny_base_folder)), support.batch(rows=rows)
    for seed, name in enumerate("ab"):
        made = model.add_adapter(name, ("0", "1"), "pfeiffer")
        noise([v for n, v in made.named_variables().items() if "/LayerNorm/" in n], 99)
        noise([v for n, v in made.named_variables().items() if n.startswith("adapters/")], seed)
    model.add_fusion("f", ["a", "b"], ("n", "y"))
    for name, logits in model.with_members(given, "f").items():
        np.testing.assert_allclose(logits, model(given, name), atol=1e-5)


@pytest.mark.long
def test_it_is_the_same_in_another_process(saved, model, inputs, tiny_base_folder, tmp_path):
    np.savez(tmp_path / "inputs.npz", **inputs)
    code = (
        "import sys, numpy as np, adapter_bert_tf as abt\n"
        "base, folder, inputs, out = sys.argv[1:]\n"
        "model = abt.AdapterModel(abt.load_base(base)); name = model.load_adapter(folder)\n"
        "np.save(out, model(dict(np.load(inputs)), name))\n"
    )
    out = tmp_path / "out.npy"
    arguments = [tiny_base_folder, saved, tmp_path / "inputs.npz", out]
    done = processes.run([sys.executable, "-c", code, *arguments])
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(out), model(inputs, "f"), atol=1e-6)


@pytest.mark.slow
def test_beside_ordinary_adapters_in_one_saved_model(saved, model, tiny_base_folder, tmp_path):
    model.save_adapter("a", tmp_path / "a")
    base = load_base(tiny_base_folder)
    names = join([str(tmp_path / "a"), str(saved)], base, tmp_path / "served")
    assert names == ["a", "f", "tasks"]
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    texts = ["the cat sat", "a dog", "the red house"]
    from adapter_bert_tf.data.tokenization import TextEncoder

    encoded = TextEncoder(base.vocabulary, 24).inputs(texts)
    rows = served["tasks"](
        task=tf.constant(["f", "a", "f"]), text_a=tf.constant(texts), text_b=tf.constant([""] * 3)
    )["logits"].numpy()
    alone = served["f"](text_a=tf.constant(texts))["logits"].numpy()
    expected = model(encoded, "f").numpy()
    np.testing.assert_allclose(alone, expected, atol=1e-5)
    np.testing.assert_allclose(rows[[0, 2], :2], expected[[0, 2]], atol=1e-5)
    np.testing.assert_allclose(rows[1, :2], model(encoded, "a")[1], atol=1e-5)


def test_the_store_knows_it(saved, capsys):
    assert main(["list", str(saved.parent)]) == 0
    assert "1 adapters" in capsys.readouterr().out
    assert main(["show", str(saved)]) == 0
    assert "fusion of 3 (a, b, c)" in capsys.readouterr().out
    assert main(["verify", str(saved), *map(str, sorted((saved / "members").iterdir()))]) == 0


def test_fusions_of_the_same_members_are_averaged(saved, model, tmp_path, capsys):
    model.save_adapter("g", tmp_path / "g")
    output = f"--output={tmp_path}/mean"
    assert main(["average", str(saved), str(tmp_path / "g"), output]) == 0
    mean, first = load_adapter(str(tmp_path / "mean")), load_adapter(str(saved))
    second = load_adapter(str(tmp_path / "g"))
    assert [m.config["sha256"] for m in mean.members] == first.config["members"]
    for name, value in mean.weights.items():
        expected = (first.weights[name].astype(np.float64) + second.weights[name]) / 2
        np.testing.assert_allclose(value, expected, atol=1e-6)
    noise(model.add_fusion("h", ["a", "b"], ("n", "y")).trainable_variables, 3)
    model.save_adapter("h", tmp_path / "h")
    model.delete_adapter("h")
    assert main(["average", str(saved), str(tmp_path / "h"), f"--output={tmp_path}/no"]) == 1
    assert "these differ in ['adapter', 'members']" in capsys.readouterr().err


def test_adapterhub_takes_members_one_by_one(saved, tmp_path, capsys, tiny_base_folder):
    base = f"--base_model={tiny_base_folder}"
    assert main(["export", str(saved), f"--output={tmp_path}/hub", base]) == 1
    assert "in its `members/`" in capsys.readouterr().err
    for i, member in enumerate(sorted((saved / "members").iterdir())):
        config = json.loads((member / "adapter_config.json").read_text())
        if config["labels"]:
            assert main(["export", str(member), f"--output={tmp_path}/{i}", base]) == 0


def test_a_saved_fusion_may_be_replaced(saved, model, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "f")
    model.save_adapter("f", folder)
    (folder / "members" / "notes.txt").write_text("mine")
    with raises_code("occupied", "'members/notes.txt'"):
        model.save_adapter("f", folder)
    assert (folder / "members" / "notes.txt").read_text() == "mine"


def test_an_adapter_among_its_members_is_not_lost(saved, model, tmp_path, capsys):
    folder = shutil.copytree(saved, tmp_path / "f")
    model.save_adapter("a", tmp_path / "a")
    shutil.copytree(tmp_path / "a", folder / "members" / "new")
    with raises_code("occupied", "members/new"):
        model.save_adapter("f", folder)
    assert load_adapter(str(folder / "members" / "new")).config["task"] == "a"
    for place in (folder / "members", folder / "members" / "other" / "deep"):
        with raises_code("occupied"):
            model.save_adapter("a", place)
        both = [str(saved), str(saved)]
        assert main(["average", *both, f"--output={place}"]) == 1
        assert "among the members of the fusion" in capsys.readouterr().err
    model.save_adapter("a", tmp_path / "members" / "new")  # Of nothing: a name like any other.


def test_the_card_counts_what_was_trained(tiny_base_folder, saved, tmp_path, capsys):
    own = 4 * (3 * 16**2 + 2 * 16) + 16 * 2 + 2
    members = 2 * 4 * (2 * 16 * 4 + 4 + 16)
    model = new_model(tiny_base_folder)
    model.add_fusion("t", ["a", "b"], ("n", "y"), tuning=Tuning("fusion", train_members=True))
    model.save_adapter("t", tmp_path / "t")
    for folder, count in ((saved, own), (tmp_path / "t", own + members)):
        said = f"| Trained parameters | {count:,} |"
        assert said in (folder / "README.md").read_text()
        assert main(["show", str(folder)]) == 0 and said in capsys.readouterr().out
        assert main(["list", str(folder)]) == 0 and f" {count:,} " in capsys.readouterr().out


@pytest.mark.long
def test_what_cools_is_refused_before_a_step_that_does_not_know_its_number(tiny_base_folder):
    made = new_model(tiny_base_folder).add_fusion("t", ["a", "b"], ("n", "y"), cooling_steps=9)
    made.compile("adam", made.training_loss())
    inputs, labels = support.batch(), np.array([0, 1, 1])
    with raises_code("invalid", "cooling_steps"):
        made.fit(inputs, labels, verbose=0)
    seed_dropout(made, 0, made.optimizer.iterations)
    assert np.isfinite(made.fit(inputs, labels, verbose=0).history["loss"]).all()


def test_trained_members_are_named_by_their_new_digests(tiny_base_folder, tmp_path):
    model = new_model(tiny_base_folder)
    both = Tuning("fusion", train_members=True)
    made = model.add_fusion("t", ["a", "b"], ("n", "y"), tuning=both)
    before = model.config("t")["members"]
    noise(made.trainable_variables, 1)
    model.save_adapter("t", tmp_path / "t")
    assert model.config("t")["members"] == load_adapter(str(tmp_path / "t")).config["members"]
    assert model.config("t")["members"] != before


REFUSED = {
    "an unknown member": (["a", "zz"], {}, "not_found: 'zz'"),
    "a fusion": (["a", "f"], {}, "conflict: 'f'"),
    "one name": ("a", {}, "invalid: members"),
    "a number": (["a", 3], {}, "invalid: Received: 3"),
    "none": ([], {}, "invalid: at least one member"),
    "twice": (["a", "a"], {}, "invalid: names"),
    "another tuning": (["a"], {"tuning": Tuning()}, "invalid: tuning"),
    "full tuning": (["a"], {"tuning": Tuning("full")}, "invalid: tuning"),
    "an empty name": ({"": "a"}, {}, "invalid: 'a'"),
    "a name that cannot be written": ({"\ud800": "a"}, {}, "invalid: each one line of text"),
    "a name of two lines": ({"a\nb": "a"}, {}, "invalid: each one line of text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, model):
    members, more, said = REFUSED[case]
    with raises_code(said):
        model.add_fusion("new", members, ("n", "y"), **more)
    assert "new" not in model.list_adapters()


def test_a_member_of_another_base_is_named(tiny_base_folder, tmp_path):
    support.write_google(tmp_path / "other", support.random_weights(seed=5))
    other = AdapterModel(load_base(str(tmp_path / "other")))
    other.add_adapter("theirs", ("0", "1"), SMALL, tuning=NO_NORMS)
    other.save_adapter("theirs", tmp_path / "theirs")
    model = new_model(tiny_base_folder)
    with raises_code("mismatch", "'b'"):
        model.add_fusion("f", {"a": "a", "b": tmp_path / "theirs"}, ("n", "y"))


def test_members_that_differ(tiny_base_folder):
    model = new_model(tiny_base_folder)
    model.add_adapter("wide", ("0", "1"), AdapterConfig(5), tuning=NO_NORMS)
    model.add_adapter("own", ("0", "1"), SMALL)
    noise(model.model("own").trainable_variables, 1)
    for other, said in (("wide", "mismatch: 'wide'"), ("own", "mismatch: 'own'")):
        with raises_code(said):
            model.add_fusion("f", ["a", other], ("n", "y"))
    with raises_code("invalid", "add_fusion"):
        model.add_adapter("f", ("n", "y"), FusionConfig(PRESETS["pfeiffer"], ("a",)))


# Damage. Each row changes a copy of a saved fusion and says what the message holds.


def _members(folder):
    return sorted((folder / "members").iterdir())


def _edit(path, **changes):
    """Changes a config, and seals it again, as one who knows how would."""
    config = json.loads(path.read_text())
    config |= {name: value(config) if callable(value) else value for name, value in changes.items()}
    path.write_text(json.dumps(seal(config, config["weights_sha256"])))


def _of(field, change):
    """An edit of the fusion's config whose `field` becomes `change(field)`."""
    return lambda f: _edit(f / "adapter_config.json", **{field: lambda c: change(c[field])})


def _in_adapter(**changes):
    return _of("adapter", lambda adapter: adapter | changes)


def _swap(folder):
    first, second, *_ = _members(folder)
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)


def _flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def _nested(folder):
    first = _members(folder)[0]
    copy = folder.parent / "copy"
    shutil.copytree(folder, copy)
    shutil.rmtree(first)
    copy.rename(first)


def _link(folder):
    first = _members(folder)[0]
    away = first.rename(folder.parent / "away")
    first.mkdir()
    for path in away.iterdir():
        (first / path.name).symlink_to(path)


def _link_folder(folder):
    first = _members(folder)[0]
    first.symlink_to(first.rename(folder.parent / "away"))


def _link_to_itself(folder):
    shutil.rmtree(folder / "members")
    (folder / "members").symlink_to(folder / "members")


def _named(folder):
    """Names of the members, in the order of `_members`."""
    config = json.loads((folder / "adapter_config.json").read_text())
    named = dict(zip(config["members"], config["adapter"]["members"], strict=True))
    return [name for digest, name in sorted(named.items())]


def _link_members(folder):
    (folder / "members").symlink_to((folder / "members").rename(folder.parent / "away"))


DAMAGE = {
    "no members": (lambda f: shutil.rmtree(f / "members"), "damaged: 'a'"),
    "members a file": (
        lambda f: (shutil.rmtree(f / "members"), (f / "members").write_text("x")),
        "damaged: 'a'",
    ),
    **{
        f"member {i} gone": (
            lambda f, i=i: shutil.rmtree(_members(f)[i]),
            f"damaged: '<{i}>'",
        )
        for i in range(3)
    },
    **{
        f"member without {name}": (
            lambda f, name=name: (_members(f)[1] / name).unlink(),
            "damaged: '<1>'",
        )
        for name in ("adapter_config.json", "adapter.safetensors")
    },
    **{
        f"a bit of member {i}": (
            lambda f, i=i: _flip(_members(f)[i] / "adapter.safetensors"),
            f"damaged: '<{i}>'",
        )
        for i in range(3)
    },
    "a member cut short": (
        lambda f: (_members(f)[0] / "adapter.safetensors").write_bytes(b"x" * 20),
        "damaged: '<0>'",
    ),
    "an empty member": (
        lambda f: (_members(f)[0] / "adapter.safetensors").write_bytes(b""),
        "damaged: '<0>'",
    ),
    "a member's config is a list": (
        lambda f: (_members(f)[0] / "adapter_config.json").write_text("[]"),
        "damaged: '<0>'",
    ),
    "a member's config, edited": (
        lambda f: _edit(_members(f)[0] / "adapter_config.json", command="x"),
        "damaged: '<0>'",
    ),
    "two members swapped": (_swap, "damaged: digest"),
    "a foreign folder": (
        lambda f: (f / "members" / ("0" * 16)).mkdir(),
        "damaged: is not a member",
    ),
    "a foreign file": (
        lambda f: (f / "members" / "notes").write_text("x"),
        "damaged: is not a member",
    ),
    "a fusion for a member": (_nested, "damaged: is a fusion"),
    "links for a member": (_link, "damaged: '<0>'"),
    "a link for a member": (_link_folder, "damaged: is a link"),
    "a link for all members": (_link_members, "damaged: is a link"),
    "a link to itself for all members": (_link_to_itself, "damaged: is a link"),
    "the fusion without weights": (
        lambda f: (f / "adapter.safetensors").unlink(),
        "damaged: damaged",
    ),
    "a bit of the fusion": (lambda f: _flip(f / "adapter.safetensors"), "damaged: digest"),
    "the fusion cut short": (
        lambda f: (f / "adapter.safetensors").write_bytes(b"x" * 100),
        "damaged: damaged",
    ),
    "digests in a text": (_of("members", lambda m: "".join(m)), "invalid: members"),
    "no digests": (_of("members", lambda m: None), "invalid: members"),
    "too few digests": (_of("members", lambda m: m[:2]), "invalid: members"),
    "too many digests": (_of("members", lambda m: [*m, m[0]]), "invalid: members"),
    "one digest twice": (_of("members", lambda m: [m[0], m[0], m[2]]), "damaged: is not a member"),
    "short digests": (_of("members", lambda m: [d[:16] for d in m]), "invalid: members"),
    "digests that lead away": (
        _of("members", lambda m: ["../" * 20 + "a" * 4] * 3),
        "invalid: digest",
    ),
    "digests of numbers": (_of("members", lambda m: [1, 2, 3]), "invalid: digest"),
    "another number of names": (_in_adapter(members=["a", "b"]), "invalid: digest"),
    "equal names": (_in_adapter(members=["a", "a", "b"]), "invalid: names"),
    "no names": (_in_adapter(members=[]), "invalid: names"),
    "names of numbers": (_in_adapter(members=[1, 2, 3]), "invalid: names"),
    "a huge number of names": (
        _in_adapter(members=[str(i) for i in range(5000)]),
        "invalid: names",
    ),
    "wider members": (
        _of("adapter", lambda a: a | {"member": a["member"] | {"bottleneck_size": 9}}),
        "damaged: adapter_config.json",
    ),
    "other places": (
        _of("adapter", lambda a: a | {"member": a["member"] | {"sublayers": ["attention"]}}),
        "damaged: does not match its config",
    ),
    "parallel": (
        _of("adapter", lambda a: a | {"member": a["member"] | {"placement": "parallel"}}),
        "invalid: must be serial",
    ),
    "a member that is no config": (
        _in_adapter(member=3),
        "invalid: member must be an AdapterConfig",
    ),
    "LayerNorms that nobody brings": (
        _in_adapter(own_norms=True),
        "damaged: adapter_config.json",
    ),
    "a temperature of text": (_in_adapter(cooling_steps="hot"), "invalid: cooling_steps"),
    "an unknown key": (_in_adapter(more=1), "invalid: adapter"),
    "members of no fusion": (
        _of("adapter", lambda a: a["member"]),
        "invalid: no such part",
    ),
}


def test_forty_kinds_of_damage():
    assert len(DAMAGE) >= 40


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_refused(case, saved, tmp_path):
    damage, expected = DAMAGE[case]
    folder = shutil.copytree(saved, tmp_path / "f")
    load_adapter(str(folder))
    for number, name in enumerate(_named(pathlib.Path(folder))):
        expected = expected.replace(f"<{number}>", name)
    damage(pathlib.Path(folder))
    with raises_code(expected):
        load_adapter(str(folder))


def test_the_first_fusion_that_was_written():
    folder = support.GOLDEN.parent / "fusion"
    expected = json.loads((folder / "expected.json").read_text())
    model = AdapterModel(load_base(str(support.GOLDEN.parent / "written_before" / "base")))
    assert model.load_adapter(folder / "adapter") == "golden"
    found = model.with_members(expected["inputs"], "golden")
    assert list(found) == ["golden", "one", "two"]
    for name, logits in expected["logits"].items():
        np.testing.assert_allclose(found[name], logits, atol=1e-5)
