"""Too little memory: which errors count, what the message advises, and that nothing is lost."""

import pytest
import tensorflow as tf

from adapter_bert_tf.errors import OutOfMemory, is_out_of_memory, memory_context
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.run.memory import smaller_batch
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.training.progress import Progress
from tests.refusals import raises_code
from tests.runs import train, try_to_train, write_mrpc

IN_GRAPH = (
    "Graph execution error:\n\nDetected at node MatMul defined at (most recent call last):\n"
    '  File "x.py"\n\nOOM when allocating tensor with shape[32,12,128,128] and type float on '
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n\t [[{{node MatMul}}]]\n"
    "Hint: If you want to see a list of allocated tensors when OOM happens, ..."
)
CUBIN = "Failed to load in-memory CUBIN: CUDA_ERROR_OUT_OF_MEMORY: out of memory"


def error(kind, text):
    return getattr(tf.errors, kind)(None, None, text)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (MemoryError(), True),
        (error("ResourceExhaustedError", IN_GRAPH), True),
        (error("ResourceExhaustedError", "Out of memory while trying to allocate 99 bytes."), True),
        (error("InternalError", f"Graph execution error:\n\n{CUBIN}\n\t [[{{node a}}]]"), True),
        (
            error("InternalError", "failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED"),
            True,
        ),
        (error("ResourceExhaustedError", "Ran out of memory in memory space hbm."), True),
        (error("ResourceExhaustedError", "out/x.tmp; No space left on device"), False),
        (error("InternalError", "Blas xGEMM launch failed"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_which_errors_are_about_memory(raised, expected):
    assert is_out_of_memory(raised) == expected


@pytest.mark.parametrize("jit_compile", [False, True])
def test_tensorflows_own_errors(jit_compile):
    """More memory than any machine can address, which TensorFlow refuses at once."""
    fill = tf.function(lambda x: tf.broadcast_to(x, [2**48]), jit_compile=jit_compile)
    line = "Out of memory while" if jit_compile else "shape[281474976710656]"
    with raises_code("out_of_memory", "Give less.", line), memory_context(lambda: "Give less."):
        fill(tf.constant(1.0))


@pytest.mark.parametrize(
    ("size", "replicas", "smaller"),
    [
        (32, 1, 16),
        (24, 1, 12),
        (9, 1, 3),
        (7, 1, 1),
        (1, 1, None),
        (32, 4, 16),
        (6, 2, 2),
        (4, 4, None),
    ],
)
def test_a_smaller_batch(size, replicas, smaller):
    assert smaller_batch(size, replicas) == smaller


FLAGS = ("--do_eval", "--do_predict", "--num_train_epochs=1", "--learning_rate=1e-2")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


def fail(*arguments):
    raise error("ResourceExhaustedError", IN_GRAPH)


def test_training(mrpc, tiny_base_folder, tmp_path, monkeypatch, capsys):
    real = Progress.on_train_batch_end

    def fail_at_step_6(self, batch, logs=None):
        if batch == 5:
            fail()
        real(self, batch, logs)

    flags = (*FLAGS, "--save_checkpoints_steps=2", "--gradient_accumulation_steps=1")
    with monkeypatch.context() as patched:
        patched.setattr(Progress, "on_train_batch_end", fail_at_step_6)
        message = try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    for words in (
        *("--train_batch_size=8", "--max_seq_length=16", "--precision=float32"),
        *("--train_batch_size=4 --gradient_accumulation_steps=2", "--max_seq_length=8"),
        "OOM when allocating tensor with shape[32,12,128,128]",
    ):
        assert words in message
    train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    assert "Resuming from step 4" in capsys.readouterr().out


def test_an_evaluation_and_a_prediction_continue_with_smaller_batches(
    mrpc, tiny_base_folder, tmp_path, monkeypatch, capsys
):
    flags = [*FLAGS, "--eval_batch_size=6", "--predict_batch_size=2"]
    for phase, name in (("evaluate", "eval"), ("predict", "predict")):
        with monkeypatch.context() as patched:
            patched.setattr(ClassificationRunner, phase, fail)
            message = try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
        smaller = {"eval": 3, "predict": 1}[name]
        assert f"Give --{name}_batch_size={smaller}." in message
        flags.append(f"--{name}_batch_size={smaller}")
    train(mrpc, tiny_base_folder, tmp_path / "out", *flags)
    assert capsys.readouterr().out.count("step 8/8") == 1  # Trained once.


def test_the_predictor(finished_run, monkeypatch):
    predictor = Predictor(finished_run.out / "adapter", base=finished_run.base)
    monkeypatch.setattr(AdapterModel, "__call__", lambda *a, **k: fail())
    with pytest.raises(OutOfMemory) as raised:
        predictor(["a cat"], ["a dog"])
    assert "batch of 32 rows" in str(raised.value) and raised.value.arguments == ("batch_size",)
