"""The artificial languages, and the plans and tables of languages and domains."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.tokenization import TextEncoder
from benchmarks import domain, language_texts, languages
from benchmarks.language_texts import SPECIAL, translate

RESULTS = ("eval_loss", "eval_perplexity", "eval_accuracy")
TEXTS = ["the cat sat on 3 mats", "cats sat: the cat, the mat"]


@pytest.fixture
def pieces(tmp_path):
    pieces = language_texts.vocabulary(TEXTS * 3)
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return pieces


def test_a_text_and_its_translation_have_pieces_at_equal_places(pieces, tmp_path):
    encoder = TextEncoder(read_vocabulary(f"{tmp_path}/vocab.txt"), 16)
    both = [np.asarray(encoder.inputs(TEXTS)["input_word_ids"])]
    both += [np.asarray(encoder.inputs([translate(t) for t in TEXTS])["input_word_ids"])]
    ours, theirs = ([pieces[i] for i in ids.ravel()] for ids in both)
    assert "[UNK]" not in ours and len(set(ours)) > 10
    assert theirs == [p if p in SPECIAL else translate(p) for p in ours]


@pytest.mark.parametrize(("aligned", "share"), [(True, 1.0), (False, 0.0)])
def test_aligned_pieces(aligned, share, tmp_path, pieces):
    table = np.random.default_rng(0).normal(size=(len(pieces), 8)).astype(np.float32)
    places = {piece: place for place, piece in enumerate(pieces)}
    for piece, place in places.items():
        other = places.get(translate(piece), place)
        if other > place:
            table[other] = table[place] if aligned else -table[place]
    save_file({"bert.embeddings.word_embeddings.weight": table}, tmp_path / "model.safetensors")
    assert languages.aligned_pieces(tmp_path) == share


def test_tables_of_languages():
    def row(adapters, seed, **scores):
        return {"adapters": adapters, "seed": seed, "scores": scores, "loss_a": 3.0, "loss_b": 3.1}

    rows = [
        row("none", 0, **{"a over a": 0.8, "b over b": 0.5}),
        *(row("pfeiffer", s, **dict.fromkeys(languages.SCORES, 0.7 + s / 10)) for s in (0, 1)),
        {**languages.BASE._asdict(), "eval": {"eval_loss": 3.5}, "steps": 1200, "aligned": 0.25},
    ]
    by_case = {languages.Run(r["adapters"], r["seed"]): r for r in rows}
    table = languages.languages(by_case)
    assert table[2:] == [
        "| none | 80.0 | 50.0 |  | 1 |",
        "| pfeiffer |" + " 75.0 (70.0-80.0) |" * 3 + " 2 |",
    ]
    assert "25%" in languages.language_base(by_case)[2]
    assert len(languages.plan()) == len(set(languages.plan())) == 15


def test_tables_of_domains():
    runs = domain.plan()
    rows = {
        run: {"trained": 10, "eval": dict.fromkeys(RESULTS, 0.5)} for run in runs if run.seed == 0
    }
    assert len(domain.domain_text(rows)) == 2 + len(domain.TEXT_METHODS)
    assert domain.domain_task(rows)[2] == "| the base as it is | 50.0 | 1 |"


@pytest.mark.parametrize("run", domain.plan()[:1] + domain.plan()[-1:], ids=str)
def test_commands_name_no_folder_of_this_machine(run):
    assert str(domain.FOLDER) not in json.dumps(domain.command(run))
