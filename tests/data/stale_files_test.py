"""Windows that a killed process had begun to write go; those of a living one stay."""

import os
import time

import pytest

from adapter_bert_tf.data.questions import stale_files

MINE, OTHER = "0123abcd", "89abcdef"
SHARD, SIGN, HALF = f"{OTHER}-00.tfrecord", f"{OTHER}.writing", "done.json.01234567.tmp"
GONE = {
    "killed in its shards": ({SHARD, SIGN, HALF}, {SHARD, SIGN, HALF}),
    "killed after its last file": ({f"{MINE}.writing"}, {f"{MINE}.writing"}),
    "finished beside us, and read now": ({SHARD}, set()),
    "somebody else's": ({"notes.tfrecord", "done.json.mine.tmp", "89abcdef.txt"}, set()),
}


@pytest.mark.parametrize("case", GONE)
def test_what_goes(case, tmp_path):
    names, gone = GONE[case]
    ours = {f"{MINE}-00.tfrecord", "done.json"}
    for name in names | ours:
        (tmp_path / name).write_text("x")
    stale_files.remove(str(tmp_path), MINE)
    assert set(os.listdir(tmp_path)) == (names | ours) - gone


def test_who_writes_is_left_alone(tmp_path):
    with stale_files.writing(str(tmp_path), OTHER):
        for name in (SHARD, HALF):
            (tmp_path / name).write_text("x")
        stale_files.remove(str(tmp_path), MINE)
        assert set(os.listdir(tmp_path)) == {SHARD, SIGN, HALF}
    assert set(os.listdir(tmp_path)) == {SHARD, HALF}


def test_what_is_old_goes_in_any_case(tmp_path):
    (tmp_path / SHARD).write_text("x")
    old = time.time() - 2 * stale_files.OLD
    os.utime(tmp_path / SHARD, (old, old))
    stale_files.remove(str(tmp_path), MINE)
    assert not os.listdir(tmp_path)
