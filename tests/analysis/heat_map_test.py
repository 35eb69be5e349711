"""Tables of shares, read and drawn."""

import pytest

from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.analysis.composition import heat_map
from adapter_bert_tf.cli.analyze import main
from tests.refusals import raises_code

HEADER = "target,layer,sublayer,member,attention\n"
ROWS = "t,0,attention,a,0.25\nt,0,attention,b,0.75\n"


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, ".00"), (0.069, ".07"), (0.994, ".99"), (0.995, "1"), (0.9999, "1"), (1.0, "1")],
)
def test_two_digits(share, said):
    assert heat_map.format_proportion(share) == said


def test_nothing_where_there_is_no_share():
    assert heat_map.format_proportion(float("nan")) == ""


def test_a_table_that_a_spreadsheet_saved(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf" + (HEADER + ROWS).replace("\n", "\r\n").encode())
    [(target, members, places, shares)] = heat_map.read([str(path)])
    assert (target, members, places, shares.tolist()) == ("t", ["a", "b"], ["1"], [[0.25], [0.75]])


REFUSED = {
    "no columns": (b"a\n1\n", "damaged: KeyError"),
    "not UTF-8": (b"\xff" * 10_000, "damaged: 'utf-8'"),
    "no rows": (HEADER.encode(), "damaged: it has no rows"),
    **{
        name: (HEADER.encode() + f"t,{layer},attention,a,{share}\n".encode(), said)
        for name, layer, share, said in (
            ("nan", 0, "nan", "damaged: a share from 0 to 1"),
            ("infinite", 0, "inf", "damaged: a share from 0 to 1"),
            ("negative", 0, -1, "damaged: a share from 0 to 1"),
            ("a layer below", -5, 0.5, "damaged: layer must be from 0"),
            ("a layer above", 10**6, 0.5, "damaged: layer must be from 0"),
        )
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table(case, tmp_path, capsys):
    content, expected = REFUSED[case]
    (tmp_path / "a.csv").write_bytes(content)
    with raises_code(expected) as error:
        heat_map.read([str(tmp_path / "a.csv")])
    assert len(str(error.value)) < 500
    assert main(["fusion_map", str(tmp_path / "a.csv"), f"--output_dir={tmp_path}/map"]) == 1
    assert (
        expected.partition(": ")[2] in capsys.readouterr().err and not (tmp_path / "map").exists()
    )


def test_no_place_for_the_map(tmp_path, capsys):
    table = tmp_path / "a.csv"
    table.write_text(HEADER + ROWS)
    (tmp_path / "taken" / "fusion_map.png").mkdir(parents=True)
    for place, said in ((table, "is a file"), (tmp_path / "taken", "is a folder")):
        assert main(["fusion_map", str(table), f"--output_dir={place}"]) == 1
        assert said in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["fusion_map.png"]


def test_the_same_map_has_the_same_bytes(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + ROWS)
    panels = heat_map.read([str(tmp_path / "a.csv")])
    first, second = (
        outputs.picture_files(heat_map.draw(panels), "map", "command") for _ in range(2)
    )
    assert first == second and list(first) == ["map.png", "map.svg"]
