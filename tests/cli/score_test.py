"""What `adapter-bert score` refuses before Beam is loaded."""

from adapter_bert_tf.cli import score

FLAGS = ["--adapter_dir=no/such", "--output=out"]


def test_names_that_the_shell_put_in_place_of_a_pattern(capsys):
    assert score.main([*FLAGS, "--input", "a.csv", "b.csv"]) == 1
    assert "b.csv" in capsys.readouterr().err


def test_flags_of_beam_are_taken_with_their_values(capsys):
    assert score.main([*FLAGS, "--input=a.csv", "--runner=R", "--region", "r", "--project=p"]) == 1
    assert "no/such" in capsys.readouterr().err
