"""The runs that are killed: a command, and the folder in which it starts."""

import dataclasses
import pathlib

from tests import support
from tests.runners import squad_test
from tests.runs import base_flags, write_mrpc

CLASSIFY = (
    *("--task_name=mrpc", "--do_train", "--do_eval", "--do_predict", "--do_export"),
    *("--max_seq_length=16", "--train_batch_size=8", "--num_train_epochs=3"),
    *("--learning_rate=1e-2", "--save_checkpoints_steps=2"),
)
BEST = ("--eval_every_steps=2", "--keep=best")
ANSWER = (
    *("--do_train", "--do_predict", "--do_export", "--train_batch_size=6", "--num_train_epochs=4"),
    *("--learning_rate=1e-2", "--save_checkpoints_steps=2", *squad_test.TINY),
)
ADAPT = (
    *("--max_seq_length=16", "--train_batch_size=8", "--num_train_epochs=2"),
    *("--learning_rate=1e-2", "--save_checkpoints_steps=2", "--whole_word_masking"),
)


@dataclasses.dataclass(frozen=True)
class Scene:
    """A run that is killed.

    Args:
      script: `run_classifier`, `run_squad` or `run_adapt`.
      flags: of the command, without paths.
      before: of a command that has run in the same folder before, or None.
    """

    script: str
    flags: tuple[str, ...]
    before: tuple[str, ...] | None = None


SCENES = {
    "fresh": Scene("run_classifier", (*CLASSIFY, *BEST)),
    "overwrite": Scene(
        "run_classifier", (*CLASSIFY, "--overwrite"), (*CLASSIFY, *BEST, "--seed=3")
    ),
    "squad": Scene("run_squad", ANSWER),
    "text": Scene("run_adapt", ADAPT),
}
FOREIGN = ("notes.txt", "other/run.json", "out/mine.txt", "out/mine/adapter.safetensors")


def inputs(scene, folder):
    """Writes a base and data, outside of what is watched; the flags that name them."""
    support.write_google(folder / "base")
    paths = base_flags(folder / "base")
    if scene.script == "run_classifier":
        return [*paths, f"--data_dir={write_mrpc(folder / 'MRPC', rows=16)}"]
    if scene.script == "run_adapt":
        (folder / "text.txt").write_text("the cat sat on the mat .\nwe walk in the sun\n" * 20)
        return [*paths, f"--text_files={folder}/text.txt"]
    train, dev = (squad_test.write(folder, name) for name in ("train", "dev"))
    return [*paths, f"--train_file={train}", f"--predict_file={dev}"]


def write_foreign(root):
    """Writes files of somebody else, beside the output folder and in it."""
    for name in FOREIGN:
        pathlib.Path(root, name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(root, name).write_text("mine")
