"""The 17 tasks of Table 2: rows in each publisher's layout, and the nine that are here for real."""

import csv
import io

import pytest

from adapter_bert_tf.data.examples import read_examples
from adapter_bert_tf.data.labels import infer_labels
from adapter_bert_tf.tasks import find_task
from adapter_bert_tf.tasks.text_classification import OPINION, STANCE, TEXT_CLASSIFICATION

QUALITY = "_unit_id,_golden,_unit_state,_trusted_judgments,_last_judgment_at".split(",")
ECONOMY = [*QUALITY, "positivity", "positivity:confidence", "relevance", "relevance:confidence"]
POLITICAL = [
    *QUALITY,
    "audience",
    "audience:confidence",
    "bias",
    "bias:confidence",
    "message",
    "message:confidence",
    "orig__golden",
    "audience_gold",
    "bias_gold",
    "bioid",
    "embed",
    "id",
    "label",
    "message_gold",
    "source",
    "text",
]
PROGRESSIVE = [*QUALITY, STANCE, f"{STANCE}:confidence", OPINION, "target", "tweet", "tweet_id"]
COMPLAINTS = (
    "Date received,Product,Sub-product,Issue,Sub-issue,Consumer complaint narrative,Company public "
    "response,Company,State,ZIP code,Tags,Consumer consent provided?,Submitted via,Date sent to "
    "company,Company response to consumer,Timely response?,Consumer disputed?,Complaint ID"
).split(",")


def _csv(header, text, label, values, encoding="utf-8", **more):
    """A quoted CSV with (text, label) values; every other cell is a dash."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, header, restval="-")
    writer.writeheader()
    writer.writerows({text: t, label: v, **more} for t, v in values)
    return stream.getvalue().encode(encoding)


def _rows(*values):
    """Four texts a label."""
    return [(f"{label} text {i}", label) for label in values for i in range(4)]


LINES = 'It\'s\n"bad", é'
# Task: (files in the publisher's layout, labels found, number of examples). One row a task.
LAYOUTS = {
    "20_newsgroups": (
        {
            f"20news-bydate-{part}/{group}/{i}": f"é {part} {group} {i}".encode("latin-1")
            for part in ("train", "test")
            for group in ("sci.med", "rec.autos")
            for i in (0, 1, 2, ".DS_Store")  # macOS writes the last one.
        },
        {"sci.med", "rec.autos"},
        12,
    ),
    "crowdflower_airline": (
        {
            "Airline-Sentiment-2-w-AA.csv": _csv(
                [
                    *QUALITY,
                    "airline_sentiment",
                    "airline_sentiment:confidence",
                    "negativereason",
                    "airline",
                    "airline_sentiment_gold",
                    "name",
                    "text",
                    "tweet_id",
                ],
                "text",
                "airline_sentiment",
                [*_rows("positive", "neutral"), (LINES, "negative")],
                "latin-1",
            )
        },
        {"positive", "neutral", "negative"},
        9,
    ),
    "crowdflower_corporate_messaging": (
        {
            "Corporate-messaging-DFE.csv": _csv(
                [
                    *QUALITY,
                    "category",
                    "category:confidence",
                    "category_gold",
                    "id",
                    "screenname",
                    "text",
                ],
                "text",
                "category",
                [*_rows("Action", "Exclude"), (LINES, "Action")],
                "mac_roman",
            )
        },
        {"Action", "Exclude"},
        9,
    ),
    "crowdflower_disasters": (
        {
            "socialmedia-disaster-tweets-DFE.csv": _csv(
                [
                    *QUALITY,
                    "choose_one",
                    "choose_one:confidence",
                    "choose_one_gold",
                    "keyword",
                    "location",
                    "text",
                    "tweetid",
                    "userid",
                ],
                "text",
                "choose_one",
                _rows("Relevant", "Not Relevant", "Can't Decide"),
            )
        },
        {"Relevant", "Not Relevant"},
        8,
    ),
    "crowdflower_economic_news_relevance": (
        {
            "Full-Economic-News-DFE-839861.csv": _csv(
                [
                    *ECONOMY,
                    "articleid",
                    "date",
                    "headline",
                    "positivity_gold",
                    "relevance_gold",
                    "text",
                ],
                "text",
                "relevance",
                [("a</br></br>b", "yes"), *_rows("yes", "no", "not sure")],
            )
        },
        {"yes", "no"},
        9,
    ),
    "crowdflower_emotion": (
        {
            "text_emotion.csv": _csv(
                ["tweet_id", "sentiment", "author", "content"],
                "content",
                "sentiment",
                _rows("fun", "worry"),
            )
        },
        {"fun", "worry"},
        8,
    ),
    "crowdflower_global_warming": (
        {
            "1377884570_tweet_global_warming.csv": _csv(
                ["tweet", "existence", "existence.confidence"],
                "tweet",
                "existence",
                _rows("Yes", "Y", "No", "N", "NA", "N/A", ""),
            )
        },
        {"Yes", "No"},
        16,
    ),
    "crowdflower_political_audience": (
        {
            "Political-media-DFE.csv": _csv(
                POLITICAL, "text", "audience", _rows("national", "constituency"), "latin-1"
            )
        },
        {"national", "constituency"},
        8,
    ),
    "crowdflower_political_bias": (
        {"Political-media-DFE.csv": _csv(POLITICAL, "text", "bias", _rows("neutral", "partisan"))},
        {"neutral", "partisan"},
        8,
    ),
    "crowdflower_political_message": (
        {"Political-media-DFE.csv": _csv(POLITICAL, "text", "message", _rows("policy", "attack"))},
        {"policy", "attack"},
        8,
    ),
    "crowdflower_primary_emotions": (
        {
            "primary-plutchik-wheel-DFE.csv": _csv(
                [
                    *QUALITY,
                    "emotion",
                    "emotion_confidence",
                    "emotion_gold",
                    "id",
                    "idiom_id",
                    "sentence",
                ],
                "sentence",
                "emotion",
                _rows("Joy", "Awe"),
            )
        },
        {"Joy", "Awe"},
        8,
    ),
    "crowdflower_progressive_opinion": (
        {
            "progressive-tweet-sentiment.csv": _csv(
                PROGRESSIVE, "tweet", OPINION, _rows("1. explicit", "2. related", "3. none")
            )
        },
        {"1. explicit", "2. related", "3. none"},
        12,
    ),
    "crowdflower_progressive_stance": (
        {
            "progressive-tweet-sentiment.csv": _csv(
                PROGRESSIVE, "tweet", STANCE, _rows("AGAINST: it is", "FAVOR: it is", ""), "latin-1"
            )
        },
        {"AGAINST", "FAVOR"},
        8,
    ),
    "crowdflower_us_economic_performance": (
        {
            "us-economic-newspaper.csv": _csv(
                [
                    *ECONOMY,
                    "orig__golden",
                    "articleid",
                    "date",
                    "headline",
                    "lineid",
                    "next_sentence",
                    "positivity_gold",
                    "previous_sentence",
                    "relevance_gold",
                    "text",
                ],
                "text",
                "relevance",
                _rows("yes", "no", "not sure"),
            )
        },
        {"yes", "no"},
        8,
    ),
    "customer_complaint_database": (
        {
            "complaints.csv": _csv(
                COMPLAINTS,
                "Consumer complaint narrative",
                "Issue",
                [*_rows("Fees", "Fraud"), ("", "Fraud")],
            )
        },
        {"Fees", "Fraud"},
        8,
    ),
    "news_aggregator": (
        {
            "newsCorpora.csv": "".join(
                f'{i}\tA "title {i}\tu\tp\t{"bt"[i % 2]}\ts\th\t1\n' for i in range(10)
            ).encode()
        },
        {"b", "t"},
        10,
    ),
    "sms_spam_collection": (
        {
            "SMSSpamCollection": "".join(
                f'{("ham", "spam")[i % 2]}\tsay "x {i}\n' for i in range(10)
            ).encode()
        },
        {"ham", "spam"},
        10,
    ),
}


def _read_all(task, folder):
    read = read_examples(task, str(folder), ["train", "dev", "test"])
    return read, [label for part in read.values() for label in part.labels]


def test_every_task_of_the_table_has_a_row():
    assert {task.name for task in TEXT_CLASSIFICATION} == set(LAYOUTS)
    assert len(LAYOUTS) == 17


@pytest.mark.parametrize("name", LAYOUTS)
def test_publishers_layouts(name, tmp_path):
    files, labels, number = LAYOUTS[name]
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    read, found = _read_all(find_task(name), tmp_path)
    assert set(found) == labels == set(infer_labels(read["train"].labels))
    assert len(found) == number
    texts = {texts for part in read.values() for texts in part.texts()}
    assert len(texts) == number
    for text in (text for row in texts for text in row):
        assert "</br>" not in text and "\ufffd" not in text


@pytest.mark.parametrize(
    ("name", "file", "other"),
    [
        ("crowdflower_airline", "Airline-Sentiment-2-w-AA.csv", "Tweets.csv"),
        ("crowdflower_political_bias", "Political-media-DFE.csv", "political_social_media.csv"),
    ],
)
def test_other_names_of_the_same_file(name, file, other, tmp_path):
    files, labels, _ = LAYOUTS[name]
    (tmp_path / other).write_bytes(files[file])
    assert set(_read_all(find_task(name), tmp_path)[1]) == labels


def test_legacy_encodings_and_quoted_line_ends(tmp_path):
    for name in ("crowdflower_airline", "crowdflower_corporate_messaging"):
        for path, content in LAYOUTS[name][0].items():
            (tmp_path / path).write_bytes(content)
        read, _ = _read_all(find_task(name), tmp_path)
        assert (LINES,) in {texts for part in read.values() for texts in part.texts()}


# Folder of the data that is here: (examples, classes). The first six are whole, as in the paper.
REAL = {
    "20_newsgroups": ("20_newsgroups", 18846, 20),
    "crowdflower_corporate_messaging": ("crowdflower_corporate_messaging", 3118, 4),
    "crowdflower_disasters": ("crowdflower_disasters", 10860, 2),
    "crowdflower_emotion": ("crowdflower_emotion", 40000, 13),
    "crowdflower_global_warming": ("crowdflower_global_warming", 4225, 2),
    "crowdflower_primary_emotions": ("crowdflower_primary_emotions", 2524, 18),
    "crowdflower_political_bias": ("crowdflower_political_bias", 5000, 2),
    "news_aggregator": ("news_aggregator", 13356, 4),
    "customer_complaint_database": ("customer_complaints", 389, 42),
}


@pytest.mark.parametrize("name", REAL)
def test_real_data(name, real_data):
    folder, number, classes = REAL[name]
    read, labels = _read_all(find_task(name), real_data / "extra" / folder)
    assert (len(labels), len(set(labels))) == (number, classes)
    assert set(read["train"].labels) == set(labels)
    shares = [len(read[split]) / number for split in ("train", "dev", "test")]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.005)
    train, dev, test = (set(read[split].texts()) for split in ("train", "dev", "test"))
    assert not (train & dev or train & test or dev & test)
