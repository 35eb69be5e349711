"""Files of a run in its output folder."""

import os
from collections.abc import Collection

from adapter_bert_tf import report
from adapter_bert_tf.config.sections.command import OutputConfig
from adapter_bert_tf.output.output_dir import Contents
from adapter_bert_tf.output.records import Fingerprint
from adapter_bert_tf.output.run_dir import EVALUATION, EXPORT, OWNER, RECORD, SWEEP, RunDir
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.directory import TrainedAdapter
from adapter_bert_tf.training import best, checkpoints

CHECKPOINTS = Contents(
    files=(best.FILE, best.WEIGHTS_FILE, checkpoints.STATE_FILE, checkpoints.FILES),
    records=(os.path.basename(OWNER),),
    incomplete=checkpoints.INCOMPLETE,
    completed_by=checkpoints.COMPLETED_BY,
)
# Decisions of a sweep about its runs, for its restart.
RUNGS, PROPOSALS = "rungs.json", "proposals.json"
EVENTS = f"events.out.tfevents.{'[0-9]' * 10}.*.v2"


def contents_of(result_files: Collection[str] = ()) -> Contents:
    """Returns what a run or a sweep writes, with patterns of the result files of its tasks."""
    return Contents(
        files=(EVALUATION, "metrics.jsonl", "sweep.csv", RUNGS, PROPOSALS, *result_files),
        records=(SWEEP, RECORD),
        added=(report.FILE, EVENTS),
        is_foreign=_is_foreign_page,
        replaced={"adapter": lambda path: AdapterDir(path).require_replaceable(), EXPORT: None},
        folders={os.path.dirname(OWNER): CHECKPOINTS},
    )


def run_dir(output: OutputConfig, run: Fingerprint, result_files: Collection[str] = ()) -> RunDir:
    """Returns the output folder of a run, with its adapter and its SavedModel."""
    return RunDir(
        output.folder,
        contents_of(result_files),
        run,
        adapter=TrainedAdapter(output.adapter_folder),
        exported=SavedModelDir(output.export_folder),
        result_files=(EVALUATION, *result_files),
    )


def _is_foreign_page(path: str) -> bool:
    return os.path.basename(path) == report.FILE and not report.is_report(path)
