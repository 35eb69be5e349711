"""The Colab notebook, run from start to end on the CPU, without network."""

import json
import pathlib
import re
import sys

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).parent.parent
PATH = ROOT / "notebooks" / "adapter_bert_colab.ipynb"
KERNEL = "this_python"
pytestmark = pytest.mark.long
NOWHERE = "http://127.0.0.1:9"  # Nothing listens there.


def read():
    return nbformat.read(PATH, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def settings(folder):
    """The environment of a run: a small task, this Python as the kernel, no way out."""
    return {
        "ADAPTER_BERT_NOTEBOOK_TASK": "demo_paraphrase",
        "ADAPTER_BERT_NOTEBOOK_EPOCHS": "4",
        "ADAPTER_BERT_NOTEBOOK_LENGTH": "64",
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "-1",
        "JUPYTER_PATH": str(folder / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PIP_NO_INDEX": "1",
        "http_proxy": NOWHERE,
        "https_proxy": NOWHERE,
        "no_proxy": "127.0.0.1,localhost",
    }


def write_kernel(folder):
    place = folder / "jupyter" / "kernels" / KERNEL
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(
        json.dumps(
            {
                "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": KERNEL,
                "language": "python",
            }
        )
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(the notebook with its outputs, the folder it ran in). A cell that fails is an error."""
    folder = tmp_path_factory.mktemp("notebook")
    write_kernel(folder)
    (folder / "work").mkdir()
    notebook = read()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings(folder).items():
            patch.setenv(name, value)
        NotebookClient(
            notebook,
            timeout=600,
            kernel_name=KERNEL,
            resources={"metadata": {"path": str(folder / "work")}},
        ).execute()
    return notebook, folder / "work"


def printed(ran, name):
    """What the cell with this id printed."""
    cell = next(cell for cell in ran[0].cells if cell.id == name)
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def test_is_committed_without_results():
    notebook = read()
    nbformat.validate(notebook)
    assert "accelerator" in notebook.metadata and "colab" in notebook.metadata
    for cell in code_cells(notebook):
        assert cell.outputs == [] and cell.execution_count is None
        assert cell.source.count("\n") < 14, cell.id


@pytest.mark.slow
def test_every_cell_runs(ran):
    assert all(cell.execution_count for cell in code_cells(ran[0]))
    assert not [
        output
        for cell in code_cells(ran[0])
        for output in cell.outputs
        if output.output_type == "error"
    ]


@pytest.mark.slow
def test_nothing_is_installed_where_all_is_there(ran):
    assert printed(ran, "pip") == "Was missing: nothing\n"
    assert printed(ran, "clone") == f"Repository: {ROOT}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell,pattern",
    [
        ("device", r"Device: CPU"),
        ("doctor", r"python -m adapter_bert_tf\.doctor\n(.*\n)+Ready\.\n$"),
        ("rows", r"demo_paraphrase: 480 pairs to train on, labels \['0', '1'\]"),
        ("train", r"\$ python run_classifier\.py --task_name=demo_paraphrase .*--do_train"),
        ("train", r"step 60/60  loss \d"),
        ("eval", r"eval_accuracy = 0\.\d+\n"),
        ("counts", r"adapters +595,200 +595,200 "),
        ("counts", r"753,794 of 23,309,186 parameters are trained: 3\.23%"),
        ("bert-base", r"this run +753,794 of +23,309,186 +3\.23%"),
        ("bert-base", r"BERT-base +2,419,202 of +111,863,042 +2\.16%"),
        ("ask", r"[01] \([01]\.\d\d\)  The train was two hours late\. \| The train is painted"),
        ("export", r"--do_export --do_predict\n(.*\n)*SavedModel: "),
        ("predict", r"of \['0', '1'\]\n(\d +[01] +0\.\d{3}  0\.\d{3}\n){5}$"),
    ],
)
def test_cells_print(ran, cell, pattern):
    assert re.search(pattern, printed(ran, cell)), printed(ran, cell)


@pytest.mark.slow
def test_learns(ran):
    """480 pairs, half of them paraphrases: better than always answering the same."""
    assert float(re.search(r"eval_accuracy = (\S+)", printed(ran, "eval"))[1]) > 0.6


@pytest.mark.slow
def test_plot(ran):
    cell = next(cell for cell in ran[0].cells if cell.id == "plot")
    pictures = [
        output.data["image/png"]
        for output in cell.outputs
        if "data" in output and "image/png" in output.data
    ]
    assert len(pictures) == 1 and len(pictures[0]) > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "adapter/adapter.safetensors",
        "adapter/adapter_config.json",
        "saved_model/saved_model.pb",
        "run.json",
        "demo-paraphrase.tsv",
    ],
)
def test_leaves(ran, name):
    assert (ran[1] / "adapter_bert_output" / "demo_paraphrase" / name).stat().st_size > 0
