"""What a killed process leaves in its output folder, and what of it goes."""

import types

from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.runners.classification.result_files import names_of
from adapter_bert_tf.tasks import find_task

LEFT = (
    "adapter.tmp-0123456789ab/adapter.safetensors",
    "metrics.jsonl.0123abcd.tmp",
    "MRPC.tsv.1f0c6932.tmp",
    "checkpoints/best-2.safetensors.b9383cd1.tmp",
    ".lock.b9383cd1.tmp",
    ".writable.273e7548.tmp",
    ".writable.273e7548.tmp.39485c9b.tmp",
    "checkpoints/flags.json.5ed1064b.tmp",
    ".lock.471c1c6777864d38af787f4dff0f8a03",
    "checkpoints/checkpoint.tmp123",
    "checkpoints/ckpt-7.data-00000-of-00001",
    "checkpoints/ckpt-9_temp/part-00000-of-00001.data-00000-of-00001.tempstate1",
)
KEPT = (
    "adapter.tmp-mine/notes.txt",
    "adapter/adapter.safetensors",
    "metrics.jsonl",
    "notes.tmp",
    "notes.20261125.tmp",
    "MRPC_mine.tsv.20261125.tmp",
    "checkpoints/x.deadbeef.tmp",
    "checkpoints/checkpoint",
    "checkpoints/ckpt-5.index",
    "checkpoints/ckpt-5.data-00000-of-00001",
    "checkpoints/flags.json",
    "checkpoints/ckpt-9.notes",
    "checkpoints/ckpt-mine/weights",
)


def test_what_was_begun_goes_and_all_else_stays(tmp_path):
    for name in (*LEFT, *KEPT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    with OutputDir(str(tmp_path), contents_of(["MRPC.tsv"])).lock():
        pass
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert there == set(KEPT)
    assert not list(tmp_path.rglob("*_temp"))


def test_only_the_runs_own_files_are_cleared(tmp_path):
    mine = (
        *("notes.txt", "events.out.tfevents.mine/x", "checkpoints/ckpt-9.notes"),
        *("events.out.tfevents.mine.v2", "error-analysis.log", "test_results_baseline.tsv"),
        *("my_eval_classes.tsv", "old_eval_details.json", "report.html"),
        *("checkpoints/ckpt-mine/weights", "checkpoints/ckpt-3.index/x", "MRPC.tsv/x"),
    )
    for name in (
        *mine,
        *("run.json", "sweep.json", "MRPC.txt", "eval_details.json", "eval_classes_mismatched.tsv"),
        *("eval_details_mismatched.json", "test_results_mismatched.tsv", "test_results.tsv"),
        "events.out.tfevents.1795627857.vm.2154.0.v2",
        "checkpoints/ckpt-5.index",
        "checkpoints/checkpoint",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    tasks = [types.SimpleNamespace(file_prefix="", task=find_task("mnli"))]
    contents = contents_of(["MRPC.*", *names_of(tasks)])
    OutputDir(str(tmp_path), contents).clear()
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert there == set(mine)
