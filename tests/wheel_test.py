"""The commands of two pages, word for word, in an empty folder, from a wheel alone.

`make test-wheel` builds it into an environment of its own, whose `bin` is `ADAPTER_BERT_BIN`.
"""

import os
import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.wheel
DOCS = pathlib.Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def bin_folder():
    folder = os.environ.get("ADAPTER_BERT_BIN")
    if not folder:
        pytest.fail("ADAPTER_BERT_BIN names no environment; `make test-wheel` makes one.")
    return pathlib.Path(folder).resolve()


def shell(script, folder, bin_folder):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment | {"PATH": f"{bin_folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=900,
    )


def run_page(name, bin_folder, tmp_path):
    """Runs the commands of a page; returns what each block printed."""
    blocks = re.findall(r"```bash\n(.*?)```", (DOCS / name).read_text(), re.S)
    said = []
    for block in blocks:
        done = shell(block, tmp_path, bin_folder)
        said.append(done.stdout)
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr and "cuInit" not in done.stderr, done.stderr
    return said


def test_the_first_steps(bin_folder, tmp_path):
    said = run_page("first_steps.md", bin_folder, tmp_path)
    _, trained, answered, served, _, from_python = said
    assert "Report: out/reviews/report.html" in trained
    assert "Adapter: out/reviews/adapter" in trained and "reviews: tsv" in trained
    card = (tmp_path / "out/reviews/adapter/README.md").read_text()
    assert "\nadapter-bert classify --task_name=tsv " in card
    assert "1,The lid does not close.,bad," in answered and '{"label": "good"' in answered
    assert served.endswith("[b'bad']\n")
    assert re.search(r"'label': 'bad'.*'label': 'good'", from_python)


def test_names_in_text(bin_folder, tmp_path):
    said = run_page("tagging.md", bin_folder, tmp_path)
    _, trained, answered, served, from_python, together = said
    assert "Report: out/names/report.html" in trained and "IOB2, 3 types" in trained
    assert '"text": "New York", "type": "place"' in answered and "\nCorp I-group\n" in answered
    assert "[b'Bob', b'Clara Sand', b'New York']] [[0, 14], [], [0, 8, 22]]" in served
    assert "'entities': [{" in from_python
    assert "eval_kinds_accuracy = " in together and '"tags": ["capital", "small"' in together


def test_it_is_the_wheel_that_runs(bin_folder, tmp_path):
    script = "import adapter_bert_tf; print(adapter_bert_tf.__file__)"
    done = shell(
        f'python -c "{script}"; which run_classifier.py run_squad.py run_tagger.py',
        tmp_path,
        bin_folder,
    )
    package, *scripts = done.stdout.split()
    assert "site-packages" in package, package
    assert [pathlib.Path(path).parent for path in scripts] == [bin_folder] * 3


@pytest.mark.parametrize(
    "words",
    ["adapter-bert --help"]
    + [f"run_{job}.py --helpshort" for job in ("classifier", "squad", "tagger")],
)
def test_help(words, bin_folder, tmp_path):
    done = shell(f"{words} || true", tmp_path, bin_folder)
    assert "usage" in done.stdout.lower() or "COMMAND" in done.stdout or "flags:" in done.stdout


def test_the_papers_experiments_are_in_it(bin_folder, tmp_path):
    script = (
        "adapter-bert classify --config=gcs_configs/mrpc_base_v3-8.yaml --nouse_tpu --dry_run 2>&1"
    )
    done = shell(f"{script} || true", tmp_path, bin_folder)
    assert "YOUR_BUCKET" in done.stdout, done.stdout[-2000:]  # So it was read.


def test_nothing_of_pytorch_comes_along(bin_folder, tmp_path):
    done = shell("pip list 2>/dev/null", tmp_path, bin_folder)
    names = done.stdout.lower()
    assert "adapter" in names and "tensorflow-text" in names
    assert not re.search(r"^(torch|transformers|sentence-transformers) ", names, re.M)
