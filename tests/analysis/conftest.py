"""A run that analyses look at."""

import pytest

from tests.analysis.looked import LookedAt
from tests.runs import train, write_mrpc


@pytest.fixture(scope="session")
def looked_at(once, tiny_base_folder):
    """Data, base and the folder of a run with an evaluation; tests must not write to them."""

    def make(folder):
        data = write_mrpc(folder / "MRPC", rows=32)
        train(data, tiny_base_folder, folder / "out", "--num_train_epochs=8", "--do_eval")

    folder = once("looked_at", make)
    return LookedAt(folder / "MRPC", tiny_base_folder, folder / "out")
