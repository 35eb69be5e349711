"""A SavedModel as a folder: what may be replaced, and how one of ours is recognized."""

import hashlib
import os
import re
from collections.abc import Collection
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Occupied
from adapter_bert_tf.heads.serving_texts import INPUTS
from adapter_bert_tf.output.artifact import Artifact, walk
from adapter_bert_tf.output.records import read_record, write_record
from adapter_bert_tf.output.run_dir import EXPORT, RECORD
from adapter_bert_tf.store.adapter_dir import require_outside_adapters

MODEL = "saved_model.pb"  # Without it a folder is not a SavedModel.
MARKER = "adapter_bert_tf.json"
LARGEST_MARKER, LARGEST_MODEL, LARGEST_RECORD = 1 << 20, 1 << 30, 1 << 24
FOLDERS = {"assets", "variables"}  # TensorFlow makes them, even if nothing is in them.
# Files of our SavedModels before there was a marker; they had no others.
FILES = re.compile(r"saved_model\.pb|fingerprint\.pb|variables/variables\.(index|data-\S{14})")
# Their signatures had these inputs, each with one of these sets of outputs.
IDS = frozenset(INPUTS)
CLASSES = {"label", "probabilities", "logits", "classes"}
TEXTS = {
    frozenset({"text_a"}): (CLASSES, {"score"}),
    frozenset({"text_a", "text_b"}): (CLASSES, {"score"}),
    frozenset({"question", "context"}): ({"answer", "score", "start", "end"},),
    frozenset({"task", "text_a", "text_b"}): (CLASSES | {"score"},),
}
NO_SIGNATURE = "__saved_model_init_op"


class SavedModelDir(Artifact):
    """A folder with a SavedModel; a marker in it lists its files.

    The marker also has the digest of the model, in case another program overwrote the model. A
    folder without a marker, from an earlier version, is recognized by its files and signatures.
    """

    title, last = "a SavedModel", MODEL

    def own_files(self, names: Collection[str]) -> set[str] | None:
        """The names in the marker or, without one, the files of an earlier version."""
        if (listed := self._marked_files()) is not None:
            # Without a model it is a copy that was cut short.
            ours = MODEL not in names or self._marker().get("saved_model_sha256") == self._digest()
            own = {*listed}
        else:
            ours = MODEL in names and _has_our_signatures(self.signatures())
            own = {name for name in names if FILES.fullmatch(name)}
        return own | (FOLDERS - {*names}) if ours else None

    def require_replaceable(self) -> None:
        """As `Artifact.require_replaceable`; also not inside an adapter directory."""
        require_outside_adapters(self.path)
        super().require_replaceable()

    def require_not_a_result(self, own: str | None = None) -> None:
        """Raises `InputError` for the SavedModel of another run, next to that run's `run.json`.

        `own` is the folder of the calling run, if there is one, which may replace its own
        SavedModel.
        """
        above = os.path.dirname(self.path.rstrip("/")) or "."
        if own and storage.real(own) == storage.real(above):
            return
        record = read_record(os.path.join(above, RECORD), LARGEST_RECORD) or {}
        results = record.get("results")
        recorded = results.get(EXPORT) if isinstance(results, dict) else None
        if recorded and recorded == self.state():
            raise Occupied(
                f"{self.path!r} is the SavedModel of the run in {above!r}, and will not be "
                "replaced. Choose another folder, or remove it first."
            )

    def state(self) -> dict[str, int | str]:
        """Sizes of its files and the digest of the model (not of its weights); {} if incomplete."""
        listed = self._marked_files() or []
        if not self._has_model() or not listed or not {*listed} <= {*walk(self.path)[0]}:
            return {}
        sizes = {name: storage.stat(self.file(name)).length for name in listed}
        return {**sizes, MODEL: str(self._digest())}

    def signatures(self) -> dict[str, Any]:
        """The signatures by name; none if there is no SavedModel, or a damaged one."""
        model = saved_model_pb2.SavedModel()
        try:
            if self._has_model():
                model.ParseFromString(storage.read_bytes(self.file(MODEL), LARGEST_MODEL))
        except DecodeError:  # It may have been read in part.
            return {}
        if len(model.meta_graphs) != 1:
            return {}
        signatures = dict(model.meta_graphs[0].signature_def)
        return {name: signatures[name] for name in sorted(signatures) if name != NO_SIGNATURE}

    def mark(self) -> None:
        """Writes the marker: from now on the folder is recognized as ours."""
        files = sorted({*walk(self.path)[0], MARKER})
        write_record(self.file(MARKER), {"files": files, "saved_model_sha256": self._digest()})

    def mark_earlier(self) -> None:
        """Writes the marker of a SavedModel of ours from before there was one.

        In an object store it is then recognized as ours if its replacement is cut short.
        """
        if self.exists() and self._marked_files() is None:
            self.mark()

    def _marker(self) -> dict[str, Any]:
        return read_record(self.file(MARKER), LARGEST_MARKER) or {}

    def _marked_files(self) -> list[str] | None:
        """The files that the marker lists; None if there is none that can be read."""
        files = self._marker().get("files")
        known = isinstance(files, list) and all(isinstance(name, str) for name in files)
        return files if known else None

    def _has_model(self) -> bool:
        """Whether the model is a file of its own: we write no links, and one may lead nowhere."""
        path = self.file(MODEL)
        return not storage.is_link(path) and storage.exists(path) and not storage.isdir(path)

    def _digest(self) -> str | None:
        if not self._has_model():
            return None
        return hashlib.sha256(storage.read_bytes(self.file(MODEL), LARGEST_MODEL)).hexdigest()


def _has_our_signatures(signatures: dict[str, Any]) -> bool:
    """Whether all signatures are such as this program writes, of one task or of many."""
    arguments = {
        name: (frozenset(signature.inputs), set(signature.outputs))
        for name, signature in signatures.items()
    }
    ids = arguments.pop("ids", None)
    if ids and (ids[0] != IDS or list(arguments) != ["serving_default"]):
        return False
    return bool(arguments) and all(
        outputs in TEXTS.get(inputs, ()) for inputs, outputs in arguments.values()
    )
