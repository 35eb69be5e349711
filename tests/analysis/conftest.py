"""A run that analyses look at."""

import pytest

from tests.analysis.looked import LookedAt
from tests.runs import train, write_mrpc


@pytest.fixture(scope="session")
def looked_at(tiny_base_folder, tmp_path_factory):
    """Data, base and the folder of a run with an evaluation; tests must not write to them."""
    data = write_mrpc(tmp_path_factory.mktemp("looked_at") / "MRPC", rows=32)
    out = data.parent / "out"
    train(data, tiny_base_folder, out, "--num_train_epochs=8", "--do_eval")
    return LookedAt(data, tiny_base_folder, out)
