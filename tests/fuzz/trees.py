"""Output folders of any content: what is ours is taken up or refused; foreign files stay."""

import json
import re

from hypothesis import strategies as st

from adapter_bert_tf.config.sections.command import OutputConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.settings import settings_of
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.output_dir import matches
from adapter_bert_tf.output.records import Fingerprint
from adapter_bert_tf.run.output_contents import contents_of, run_dir
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.training.best import BestEvaluation
from adapter_bert_tf.training.progress import MetricsLog
from tests.fuzz import values
from tests.fuzz.cases import Case, Link, contents

DEFAULTS = {row.name: row.default_of(Command.CLASSIFIER) for row in settings_of(Command.CLASSIFIER)}
FOREIGN = ("notes.txt", "thesis/a.tex", "adapter/mine.txt", "saved_model/mine", "checkpoints/mine")
OURS = (
    *(".lock", "eval_results.txt", "metrics.jsonl", "sweep.csv", "sweep.json", "run.json"),
    *("report.html", "checkpoints/flags.json", "checkpoints/best.json", "checkpoints/checkpoint"),
    *(
        "checkpoints",
        "checkpoints/state.tmp1",
        "checkpoints/step-3.index",
        "checkpoints/ckpt-7_temp",
    ),
    *(
        "checkpoints/ckpt-7.index",
        "checkpoints/ckpt-7.data-00000-of-00001",
        "sweep.csv.01234567.tmp",
    ),
    *(
        "run.json.01234567.tmp",
        ".lock.0123456789abcdef0123456789abcdef",
        "adapter.tmp-0123",
        "adapter",
    ),
    *("saved_model.tmp-12", "events.out.tfevents.1", "error-1.log", "adapter/adapter_config.json"),
    *("adapter/README.md", "saved_model/saved_model.pb", "MRPC.tsv", "test_results.tsv"),
    *("checkpoints/best-3.safetensors", "checkpoints/best.json.01234567.tmp", "saved_model"),
)
LINKS = (Link("../outside/below"), Link("../outside/below/mine"), Link("."), Link("nowhere"))
CONTENT = {"data_sha256": {"train": "0"}, "base": {}, "adapter": None}
FLAGS = DEFAULTS | {"do_train": True, "do_eval": True, "task_name": "mrpc"}
READ = {"training data": "0", "base": {}, "adapter": None}
RUN = Fingerprint(
    "run", FLAGS, {}, DEFAULTS, ("do_eval",), True, CONTENT, tuple(CONTENT), READ, scored={}
)
RECORD = {
    "flags": FLAGS,
    **CONTENT,
    "parameters": {"trained": 1, "total": 2},
    "eval": {"eval_accuracy": 0.5},
    "train_seconds": 1.0,
    "examples_per_second": 1.0,
}
OWNER = FLAGS | {"made of": READ}
LOCK = {
    "host": "another",
    "machine": "another 0 0",
    "pid": 1,
    "process": "1",
    "since": 1.0,
    "beat": 1.0,
    "id": "0",
}
BEST = {"step": 3, "score": 0.5, "results": {"eval_accuracy": 0.5}, "scores": {"3": 0.5}}
SOUND = {
    "run.json": RECORD,
    "checkpoints/flags.json": OWNER,
    ".lock": LOCK,
    "checkpoints/best.json": BEST,
    "metrics.jsonl": {"step": 1, "loss": 0.5},
    "sweep.json": {"grid": {}, "flags": FLAGS},
}


@st.composite
def cases(draw):
    """A folder of files of a run and of others; some are folders or links."""
    names = draw(st.sets(st.sampled_from((*OURS, *FOREIGN)), max_size=7))
    files = {name: draw(_content(name)) for name in names}
    names = draw(st.sets(st.text("ab.-_0~ é", min_size=1, max_size=9), max_size=2))
    files |= {name: b"" for name in names if name not in (".", "..")}
    return Case(files, {"overwrite": draw(st.booleans())})


def _content(name):
    if name in FOREIGN:
        return st.binary(max_size=9)
    odd = st.none() | st.sampled_from(LINKS) | st.binary(max_size=30)
    if name == "checkpoints":  # A link to another disk is the user's, and is followed.
        return st.none() | st.just(Link("nowhere"))
    if name not in SOUND:
        return odd
    return values.json_bytes(values.changed(SOUND[name])) | odd


def use(folder, settings):
    """What a run does with its folder before and after training; foreign files stay as they are."""
    before = _foreign(folder)
    try:
        _use(str(folder), settings["overwrite"])
    finally:
        assert _foreign(folder) == before, "a foreign file was changed"


def _use(path, overwrite):
    places = OutputConfig(path)
    run = run_dir(places, RUN, ("MRPC.tsv", "test_*"))
    _tried(SavedModelDir(places.export_folder).require_replaceable)
    _tried(lambda: require_free(f"{path}/saved_model"))
    if run.is_finished() and not overwrite:
        return
    with run.lock():
        if not overwrite:
            run.require_same_run()
            run.require_same_content()
        run.require_own_adapter(overwrite)
        if overwrite and not run.is_interrupted():
            run.clear()
        run.start_training()
        BestEvaluation.read(f"{path}/checkpoints", 5, None)
        log = MetricsLog(path, 3)
        log.close()
        run.write_record(json.loads(json.dumps(RECORD)), False)


def _tried(function):
    try:
        function()
    except InputError:
        return


def _foreign(folder):
    """Contents of what is neither ours nor looks as if a killed run had left it."""
    found = contents(folder)
    ours = {part for name in OURS for part in (name, name.split("/")[0])}
    return {name: content for name, content in found.items() if not _is_ours(name, ours)}


def _is_ours(name, ours):
    """Whether a run may write or remove a path: its own files, and what is in its own folders."""
    left = re.fullmatch(r".*\.[0-9a-f]{8}\.tmp|\.lock\.[0-9a-f]{32}", name)
    own = matches(name, contents_of(["test_*"]).patterns)
    return name in ours or left or own
