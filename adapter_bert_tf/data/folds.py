"""Cross-validation: the training data in equal parts, each the development set once."""

import collections
import dataclasses
import warnings
from typing import Any

from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Fold:
    """One of several equal parts.

    Args:
      number: which part is the development set, from 0.
      count: of parts.
      seed: of the division.

    Raises:
      InputError: for fewer than two parts, or one that is not among them.
    """

    number: int
    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 2 or not 0 <= self.number < self.count:
            raise InputError(
                f"fold is from 0 to below folds, which is 2 or more. Received: fold {self.number} "
                f"of {self.count}.",
                "folds",
            )

    def of(self, examples: Examples, stratified: bool) -> dict[str, Examples]:
        """`train` and `dev` of this fold, in file order; equal texts are on one side.

        Args:
          examples: all, with labels.
          stratified: whether every part is to have each label's share of the rows.

        Raises:
          InputError: where there are fewer different texts than parts.
        """
        texts = examples.texts()
        different = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        if len(different) < self.count:
            raise InputError(
                f"{len(texts)} examples, {len(different)} of them different, are too few for "
                f"folds={self.count}.",
                f"folds={self.count}",
            )
        groups = [different[text] for text in texts]
        train, dev = self._divided(groups, examples.labels if stratified else None)
        return {"train": examples.take(train), "dev": examples.take(dev)}

    def _divided(self, groups: list[int], labels: Any) -> tuple[list[int], list[int]]:
        """Numbers of the examples of `train` and of `dev`."""
        from sklearn.model_selection import StratifiedGroupKFold  # Half a second; few runs need it.

        if labels is None or max(collections.Counter(labels).values()) < self.count:
            labels = [""] * len(groups)  # scikit-learn refuses what no label can be divided by.
        divider = StratifiedGroupKFold(self.count, shuffle=True, random_state=self.seed)
        with warnings.catch_warnings():  # A label that not every part can have: so be it.
            warnings.filterwarnings("ignore", "The least populated class")
            parts = list(divider.split(groups, labels, groups))
        train, dev = parts[self.number]
        return train.tolist(), dev.tolist()
