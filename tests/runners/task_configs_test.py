"""How each of several tables is read for an adapter of several tasks."""

import types

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.runners.classification.chosen_task import task_of
from adapter_bert_tf.runners.classification.table_files import warn_of_encodings
from adapter_bert_tf.runners.multitask.task_configs import configs_of

TABLE = {"text_a_column": "0", "label_column": "1", "header": False, "delimiter": ";"}
SAVED = types.SimpleNamespace(
    config={
        "tasks": [
            {"task": "tsv", "name": "reviews", "table": TABLE | {"encoding": "latin-1"}},
            {"task": "cola"},
        ]
    }
)


def configs(folder, lines, **values):
    (folder / "tasks.yaml").write_text("\n".join(lines) + "\n")
    values = {"task_name": str(folder / "tasks.yaml"), "data_dir": str(folder), **values}
    config = RunConfig.from_values(Command.CLASSIFIER, values, set(values))
    return configs_of(config, SAVED)


def write(folder, name, content):
    (folder / name).mkdir()
    (folder / name / "dev.csv").write_bytes(content)


def test_the_adapter_knows_how_a_table_is_read(tmp_path, caplog):
    write(tmp_path, "reviews", "bon café;1\n".encode("latin-1"))
    (tmp_path / "cola").mkdir()
    own = configs(tmp_path, ["reviews: {task_name: tsv}", "cola:"], do_eval=True)
    reviews = own["reviews"]
    assert {name: reviews.value(name) for name in TABLE} == TABLE
    assert own["cola"].value("text_a_column") is None
    source = task_of(reviews).layouts[0]["dev"]
    assert (source.file, source.delimiter, source.encodings) == ("dev.csv", ";", ("latin-1",))
    assert not caplog.text


def test_the_user_knows_better_and_so_does_the_file(tmp_path, caplog):
    write(tmp_path, "reviews", "bon café,1\n".encode())
    line = 'reviews: {task_name: tsv, delimiter: ","}'
    own = configs(tmp_path, [line], do_eval=True)["reviews"]
    source = task_of(own).layouts[0]["dev"]
    assert (source.delimiter, source.encodings) == (",", ("utf-8",))
    assert "delimiter=','" in caplog.text and "UTF-8" not in caplog.text
    warn_of_encodings(task_of(own), str(tmp_path / "reviews"), ["dev"], "latin-1")
    assert caplog.text.count("UTF-8") == 1


def test_an_encoding_that_the_user_names_is_not_looked_for(tmp_path):
    write(tmp_path, "reviews", "bon café;1\n".encode())
    line = "reviews: {task_name: tsv, encoding: cp1252}"
    own = configs(tmp_path, [line], do_eval=True)["reviews"]
    assert task_of(own).layouts[0]["dev"].encodings == ("cp1252",)
