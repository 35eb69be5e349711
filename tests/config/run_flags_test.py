"""The flags of one run as a value."""

import pytest
from absl import flags

from adapter_bert_tf.config.absl_flags import define_flags
from adapter_bert_tf.config.row import Command
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.errors import InputError


@pytest.fixture
def run_flags():
    values = flags.FlagValues()
    define_flags(Command.SQUAD, values)
    values(["run_squad.py", "--seed=5", "--output_dir=out"])
    return RunFlags.of(values)


def test_a_change_makes_another_value(run_flags):
    changed = run_flags.changed(seed="6", do_train=True, adapter_size=None)
    assert (changed.seed, changed.do_train, changed.adapter_size) == (6, True, None)
    assert (run_flags.seed, run_flags.do_train) == (5, False)
    assert run_flags.given == {"seed", "output_dir"}
    assert changed.given == {"seed", "output_dir", "do_train", "adapter_size"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sead", 1, "Unknown flag 'sead'"),
        ("seed", -1, "--seed=-1"),
        ("keep", "first", "--keep=first"),
    ],
)
def test_a_wrong_change_is_one_message(name, value, message, run_flags):
    with pytest.raises(InputError, match=message):
        run_flags.changed(**{name: value})


def test_a_flag_that_a_file_does_not_name_had_its_default(run_flags):
    recorded = run_flags.completed({"seed": 1, "gone": True})
    assert recorded == {name: flag.default for name, flag in run_flags.definitions.items()} | {
        "seed": 1,
        "gone": True,
    }
    assert (recorded["keep"], recorded["max_seq_length"], recorded["patience"]) == (
        "last",
        384,
        None,
    )
