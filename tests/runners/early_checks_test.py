"""What is said of tables before TensorFlow is loaded."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.runners.classification.early_checks import check_tables
from tests.refusals import raises_code


def config(folder, **values):
    values = {
        "task_name": "tsv",
        "data_dir": str(folder),
        "text_a_column": "text",
        "do_train": True,
        **values,
    }
    return RunConfig.from_values(Command.CLASSIFIER, values, values)


def test_columns_of_labels(tmp_path, caplog):
    """They are looked for, and nothing is said of rows that are not read yet."""
    (tmp_path / "train.csv").write_text("text,rude,spam\nhello,0,1\nbye,1,0\n")
    check_tables(config(tmp_path, multi_label=True, label_column="rude,spam"))
    assert not caplog.text
    with raises_code("invalid", "calm"):
        check_tables(config(tmp_path, multi_label=True, label_column="rude,calm"))
