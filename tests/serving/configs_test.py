"""The settings in `examples/serving`, parsed as TensorFlow Serving parses them."""

import json
import re

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf import wrappers_pb2 as _wrappers  # noqa: F401  # Registers its messages.
from tensorflow_serving.config import model_server_config_pb2

from tests.runs import ROOT

FOLDER = ROOT / "examples" / "serving"
# Of tensorflow_serving/servables/tensorflow/session_bundle_config.proto, version 2.20.0, which the
# package tensorflow-serving-api leaves out.
BATCHING = {
    "max_batch_size": (1, "Int64Value"),
    "batch_timeout_micros": (2, "Int64Value"),
    "max_enqueued_batches": (3, "Int64Value"),
    "num_batch_threads": (4, "Int64Value"),
    "thread_pool_name": (5, "StringValue"),
    "enable_large_batch_splitting": (8, "BoolValue"),
    "max_execution_batch_size": (9, "Int64Value"),
}


def batching_parameters():
    """An empty `BatchingParameters`."""
    file = descriptor_pb2.FileDescriptorProto(
        name="batching.proto", syntax="proto3", dependency=["google/protobuf/wrappers.proto"]
    )
    message = file.message_type.add(name="BatchingParameters")
    for name, (number, kind) in BATCHING.items():
        field = message.field.add(name=name, number=number, type_name=f".google.protobuf.{kind}")
        field.label, field.type = field.LABEL_OPTIONAL, field.TYPE_MESSAGE
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("BatchingParameters"))()


def test_the_models_are_the_newest_versions():
    text = (FOLDER / "models.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path) == ("bert", "/models/bert")
    assert model.model_version_policy.latest.num_versions == 2


def test_batches_are_those_of_the_page():
    text = (FOLDER / "batching_parameters.txt").read_text()
    parsed = text_format.Parse(text, batching_parameters())
    values = {field.name: value.value for field, value in parsed.ListFields()}
    assert set(values) == {
        "max_batch_size",
        "batch_timeout_micros",
        "max_enqueued_batches",
        "num_batch_threads",
    }
    assert f"`max_batch_size` {values['max_batch_size']}" in PAGE
    assert f"`batch_timeout_micros` {values['batch_timeout_micros']}" in PAGE


PAGE = (ROOT / "docs" / "serving_load.md").read_text()


def test_the_containers_have_the_files_they_name():
    for name in ("Dockerfile", "server.Dockerfile"):
        text = (FOLDER / name).read_text()
        (copied,) = re.findall(r"^COPY (.*) \S+$", text, re.M)
        assert all((FOLDER / file).is_file() for file in copied.split())
        words = json.loads(re.search(r"^CMD (\[.*?\])", text.replace("\\\n", ""), re.M)[1])
        files = [word.split("=")[1] for word in words if "_file=" in word]
        assert {file.rpartition("/")[2] for file in files} <= {*copied.split()}
