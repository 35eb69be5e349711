"""The table of the speed of training on plain text, and memory that does not grow with the text."""

import json
import subprocess
import sys

import pytest

from benchmarks import adapt_speed, runner, text_memory
from tests import support


def test_the_table_has_medians_and_their_ratio():
    rates = {adapt_speed.PEER: (2.0, 4.0, 3.0), adapt_speed.OURS: (9.0, 12.0, 8.0)}
    rows = {
        (system, turn): {"system": system, "turn": turn, "sequences_per_second": rate}
        for system, values in rates.items()
        for turn, rate in enumerate(values)
    }
    assert adapt_speed.adapt_speed(rows)[2:] == [
        "| `adapters` | 3.0 (2.0-4.0) | 384 | 1.00 |",
        "| ours | 9.0 (8.0-12.0) | 1,152 | 3.00 |",
    ]
    del rows[adapt_speed.PEER, 0], rows[adapt_speed.PEER, 1], rows[adapt_speed.PEER, 2]
    assert adapt_speed.adapt_speed(rows)[2:] == ["| ours | 9.0 (8.0-12.0) | 1,152 |  |"]


def test_the_text_is_that_of_the_table(tmp_path):
    folder = tmp_path / "glue" / "QNLI"
    folder.mkdir(parents=True)
    rows = ["index\tquestion\tsentence\tlabel", "0\tWho?\tA cat.\tx", "1\tWho?\tA dog.\tx"]
    (folder / "dev.tsv").write_text("\n".join(rows))
    assert adapt_speed.read_lines(tmp_path) == ["Who?", "A cat.", "A dog."]


@pytest.mark.parametrize(
    ("marks", "noise_mb"),
    [([2, 4, 16], 6), pytest.param([4, 20, 200], 10, marks=pytest.mark.long)],
)
def test_memory_does_not_grow_with_the_text(tmp_path, marks, noise_mb):
    """The reader, the tokenizer, the packer and the file of sequences, of a text from a pipe."""
    support.write_google(tmp_path / "base")
    arguments = ["--measure", f"{tmp_path}/base", json.dumps(marks), "10"]
    command = [sys.executable, "-m", "benchmarks.text_memory", *arguments]
    done = subprocess.run(command, cwd=runner.ROOT, capture_output=True, text=True, check=True)
    row = json.loads(done.stdout.splitlines()[-1])
    (_, before), (reached, after) = row["most_mb"][1:]
    assert reached == row["megabytes"] == marks[-1]
    # Words of the vocabulary have at most 8 letters.
    assert row["sequences"] > marks[-1] * 1e6 / 9 / text_memory.LENGTH
    assert after < before + noise_mb, row
