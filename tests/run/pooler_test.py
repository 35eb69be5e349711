"""Whether the pooler is trained where nobody says: the base decides, and a run keeps to it."""

import json

import pytest

from adapter_bert_tf.base import load_base
from adapter_bert_tf.config.setting import Command
from tests import support
from tests.runners import squad_test
from tests.runs import base_flags, command, run_command, train, try_to_train, write_mrpc

pytestmark = pytest.mark.long

BIAS = "bert/pooler/dense/bias"
SHORT = ("--num_train_epochs=1", "--learning_rate=1e-2")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """A base whose pooler has the bias that training begins with."""
    weights = support.random_weights()
    assert weights[BIAS].any()
    weights[BIAS] *= 0
    folder = tmp_path_factory.mktemp("untrained") / "base"
    support.write_google(folder, weights)
    return str(folder)


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC", rows=32)


def record(out):
    return json.loads((out / "run.json").read_text())


def trains_pooler(out):
    """Whether the saved adapter has a pooler; the record must say the same."""
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert config["tuning"]["train_pooler"] == bool(record(out)["flags"]["train_pooler"])
    return BIAS.encode() in (out / "adapter" / "adapter.safetensors").read_bytes()


def test_a_base_says_whether_its_pooler_was_trained(untrained, tiny_base_folder):
    assert not load_base(untrained).has_trained_pooler
    assert load_base(tiny_base_folder).has_trained_pooler


def test_the_default_base_was_never_asked_for_its_pooler(minilm):
    assert not minilm.has_trained_pooler


ASKED = {
    "untrained": ("untrained", (), True),
    "trained": ("trained", (), False),
    "the user says no": ("untrained", ("--notrain_pooler",), False),
    "the user says yes": ("trained", ("--train_pooler",), True),
    "LayerNorm": ("untrained", ("--tuning=layer_norm",), True),
    "head": ("untrained", ("--tuning=head",), True),
}


@pytest.mark.parametrize(
    "case", support.seldom(ASKED, ("untrained", "trained", "the user says no"))
)
def test_what_is_trained(case, untrained, tiny_base_folder, mrpc, tmp_path):
    base, more, expected = ASKED[case]
    folder = {"untrained": untrained, "trained": tiny_base_folder}[base]
    out = train(mrpc, folder, tmp_path / "out", *SHORT, *more)
    assert trains_pooler(out) is expected


@pytest.mark.slow
def test_answers_do_not_come_from_the_pooler(untrained, tmp_path):
    file = squad_test.write(tmp_path, "train")
    flags = [*base_flags(untrained), f"--train_file={file}", *squad_test.TINY, *SHORT]
    status, _, errors = squad_test.squad("--do_train", f"--output_dir={tmp_path}/out", *flags)
    assert status == 0, errors
    assert not trains_pooler(tmp_path / "out")


def of_earlier(out):
    """Makes the records of a run what they were when the pooler was frozen by default."""
    for path, at in ((out / "run.json", "flags"), (out / "checkpoints" / "flags.json", None)):
        content = json.loads(path.read_text())
        (content[at] if at else content)["train_pooler"] = False
        path.write_text(json.dumps(content))


@pytest.mark.slow
def test_what_began_with_a_frozen_pooler_goes_on_with_it(untrained, mrpc, tmp_path, capsys):
    out = train(mrpc, untrained, tmp_path / "out", *SHORT, "--notrain_pooler")
    of_earlier(out)
    capsys.readouterr()
    train(mrpc, untrained, out, *SHORT)
    assert "holds the results of this very run" in capsys.readouterr().out
    (out / "run.json").unlink()
    for overwrite in ((), ("--overwrite",)):  # Interrupted: it goes on, and does not begin anew.
        train(mrpc, untrained, out, *SHORT, *overwrite)
        assert not trains_pooler(out)
        (out / "run.json").unlink()
    assert "--train_pooler: False there, True here" in try_to_train(
        mrpc, untrained, out, *SHORT, "--train_pooler"
    )


def test_a_new_run_in_the_place_of_a_finished_one_asks_the_base(untrained, mrpc, tmp_path):
    out = train(mrpc, untrained, tmp_path / "out", *SHORT, "--notrain_pooler")
    train(mrpc, untrained, out, *SHORT, "--overwrite")
    assert trains_pooler(out)


@pytest.mark.slow
def test_a_sweep_of_earlier_goes_on(untrained, mrpc, tmp_path, capsys):
    arguments = [*SHORT, "--do_eval", "--num_trials=2"]
    out = train(mrpc, untrained, tmp_path / "out", *arguments, "--notrain_pooler")
    capsys.readouterr()
    train(mrpc, untrained, out, *arguments)
    assert "What --tuning=adapters trains" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.long
def test_a_run_is_repeated_from_its_record(untrained, mrpc, tmp_path):
    out = train(mrpc, untrained, tmp_path / "out", *SHORT)
    train(mrpc, untrained, tmp_path / "again", *SHORT, f"--config={out / 'run.json'}")
    name = "adapter/adapter.safetensors"
    assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_task_that_starts_from_plain_text_is_found_finished(untrained, mrpc, tmp_path, capsys):
    """The adapter of the text has no pooler, so the run decides it, and records that."""
    (tmp_path / "text.txt").write_text("the cat sat on the mat .\n" * 40)
    text = (*base_flags(untrained), f"--text_files={tmp_path}/text.txt", "--max_seq_length=16")
    short = ("--train_batch_size=8", "--noreport", f"--output_dir={tmp_path}/text")
    assert run_command(Command.ADAPT, *text, *short, "--adapter=pfeiffer")[0] == 0
    start = (*SHORT, "--do_eval", f"--init_from={tmp_path}/text/adapter")
    out = train(mrpc, untrained, tmp_path / "out", *start)
    assert trains_pooler(out)
    capsys.readouterr()
    train(mrpc, untrained, out, *start)
    assert "holds the results of this very run" in capsys.readouterr().out
    assert command(f"--config={out}/run.json", f"--output_dir={tmp_path}/again") is None
    name = "adapter/adapter.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


@pytest.mark.slow
def test_training_goes_on_from_an_adapter_with_its_pooler(untrained, mrpc, tmp_path):
    parent = train(mrpc, untrained, tmp_path / "parent", *SHORT, "--notrain_pooler")
    out = train(mrpc, untrained, tmp_path / "out", *SHORT, f"--init_from={parent / 'adapter'}")
    assert BIAS.encode() not in (out / "adapter" / "adapter.safetensors").read_bytes()
