"""Cross-validation folds."""

import collections
import dataclasses
import warnings
from typing import Any

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Fold:
    """One fold of a cross-validation. Raises `InputError` for a number out of range."""

    number: int  # Of the part that is the development set, from 0.
    count: int  # Of parts, at least 2.
    seed: int = 0  # Of the random split.

    def __post_init__(self) -> None:
        if self.count < 2 or not 0 <= self.number < self.count:
            received = f"fold {self.number} of {self.count}"
            message = f"folds must be 2 or more, and the fold below folds. Received: {received}."
            raise InputError(message, "folds")

    def split(self, examples: Examples, stratified: bool) -> dict[str, Examples]:
        """Splits examples into `train` and `dev`, in file order; equal texts stay together.

        If `stratified`, every part has the same proportions of labels. Raises `InputError` for
        fewer different texts than parts.
        """
        from sklearn.model_selection import StratifiedGroupKFold  # Takes half a second.

        texts = examples.texts()
        groups_by_text = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        if len(groups_by_text) < self.count:
            raise InputError(
                f"{len(texts)} examples, {len(groups_by_text)} of them different, are too few for "
                f"folds={self.count}.",
                f"folds={self.count}",
            )
        groups = [groups_by_text[text] for text in texts]
        labels: Any = examples.labels if stratified else None
        if labels is None or max(collections.Counter(labels).values()) < self.count:
            labels = [""] * len(groups)  # scikit-learn refuses labels with fewer rows than parts.
        splitter = StratifiedGroupKFold(self.count, shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():  # A rare label may be missing in some parts.
            warnings.filterwarnings("ignore", "The least populated class")
            parts = list(splitter.split(groups, labels, groups))
        train, dev = parts[self.number]
        return {"train": examples.take(train.tolist()), "dev": examples.take(dev.tolist())}
