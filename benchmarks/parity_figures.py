"""Writes the outputs of `transformers` that the tests compare with.

    make .venv-parity/installed
    .venv-parity/bin/python -m benchmarks.parity_figures

On the MiniLM weights and on sentences of the shipped data: `tests/golden/minilm.npz` (hidden states
and pooled output of `BertModel`), `tests/golden/tokenization.json` and `languages.json` (ids of
`BertTokenizerFast`).
"""

import json
import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
PAIRS = 64
ODD_TEXTS = [
    "Zoë's façade café cost £3½ — naïve?",
    "´ alone ´ and `back` ticks",
    "ﬁne ﬂow",
    "tab\there, newline\nthere",
    "control\x12 and zero\u200bwidth and \ufffd",
    "東京 tower, 서울, ελληνικά, кириллица",
    "ＦＵＬＬ width",
    "non\u00a0breaking\u2003spaces",
    "e\u0301 composed later",
    "İstanbul and ß",
    "x² + y³ ≤ ∞ ™ © …",
    "don't won't O'Neill",
    "3.14 1,000 50% #tag @name",
    "😀 emoji 👍🏽",
    "supercalifragilisticexpialidocious",
    "",
    "   ",
    "a" * 150,
]

# What a visitor might write about a hotel, in scripts with long words, marks and no spaces.
LANGUAGES = [
    "Das Frühstück war großartig, aber die Straßenbahnhaltestelle liegt ziemlich weit entfernt.",
    "Le petit-déjeuner était délicieux ; l'hôtel est situé à côté de la forêt.",
    "El niño comió piñas mañana, ¿verdad? ¡Qué lástima!",
    "Kahvaltı çok güzeldi, İstanbul'a ışık saçan bir otel. Teşekkürler!",
    "Phòng rất sạch sẽ và nhân viên thân thiện, tôi sẽ quay lại.",
    "Łóżko było wygodne, a śniadanie świeże i różnorodne.",
    "Завтрак был превосходный, а достопримечательности находятся неподалёку.",
    "Сніданок був чудовий, готель затишний.",
    "Το πρωινό ήταν υπέροχο, ο ξενώνας ήσυχος.",
    "ארוחת הבוקר הייתה נהדרת והחדר נקי.",
    "الإفطار كان رائعًا والغرفة نظيفة جدًا.",
    "صبحانه عالی بود و اتاق تمیز می‌شد.",
    "नाश्ता बहुत अच्छा था और कमरा साफ़ था।",
    "সকালের নাস্তা চমৎকার ছিল, ঘরটি পরিষ্কার।",
    "காலை உணவு மிகவும் நன்றாக இருந்தது.",
    "อาหารเช้าอร่อยมากและห้องพักสะอาดเงียบสงบเหมาะสำหรับครอบครัวที่มีเด็กเล็ก",
    "朝食はとても美味しかったです。部屋も静かで、また泊まりたいと思います。",
    "すばらしいほてるでしたのでまたかぞくといっしょにとまりにきたいとおもいます",
    "早餐很好吃，房间也很干净，下次还会再来。",
    "아침 식사가 훌륭했고 방도 조용했습니다.",
    "საუზმე შესანიშნავი იყო, ოთახი სუფთა.",
    "ቁርሱ በጣም ጥሩ ነበር።",
    "привет" * 10,
    "Zwei\u2028Zeilen\u2029und\u00a0ein\u3000Ende",
]


def pairs():
    """Sentence pairs of different lengths: shipped ones, some joined to longer texts."""
    from adapter_bert_tf.data.examples import read_examples
    from adapter_bert_tf.tasks import find_task

    task = find_task("demo_paraphrase")
    examples = read_examples(task, task.folder, ["train"])["train"]
    firsts = [" ".join(examples.text_a[i : i + 1 + i % 5]) for i in range(PAIRS)]
    seconds = [" ".join(examples.text_b[i : i + 1 + i % 3]) for i in range(PAIRS)]
    return firsts, seconds


def transformers_outputs(folder, firsts, seconds):
    """Hidden states `[pairs, seq, hidden]`, pooled output and inputs, as numpy arrays."""
    import torch
    import transformers

    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    encoded = tokenizer(firsts, seconds, padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**encoded)
    return {
        "input_word_ids": encoded["input_ids"].numpy().astype("i4"),
        "input_mask": encoded["attention_mask"].numpy().astype("i4"),
        "input_type_ids": encoded["token_type_ids"].numpy().astype("i4"),
        "sequence_output": output.last_hidden_state.numpy(),
        "pooled_output": output.pooler_output.numpy(),
    }


def main():
    """Writes the files."""
    import transformers

    firsts, seconds = pairs()
    from adapter_bert_tf.base import load_base

    folder = os.path.dirname(load_base().weights_path)
    figures = transformers_outputs(folder, firsts, seconds)
    # All hidden states are 10 MB: every fifth position is enough to detect a difference.
    figures["sequence_output"] = figures["sequence_output"][:, ::5].astype("f4")
    np.savez_compressed(GOLDEN / "minilm.npz", **figures)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    texts = ODD_TEXTS + firsts[:20]
    rows = [{"text": text, "ids": tokenizer(text)["input_ids"]} for text in texts]
    (GOLDEN / "tokenization.json").write_text(json.dumps(rows, indent=0), encoding="utf-8")
    lines = [json.dumps({"text": t, "ids": tokenizer(t)["input_ids"]}) for t in LANGUAGES]
    (GOLDEN / "languages.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
