"""The 17 additional tasks of Houlsby et al. 2019 (Table 2), in the files of their publishers.

The publishers do not split them; the paper splits each task at random into 80% for training, 10%
for development, 10% for testing (section 3.3), and so does `data.examples`. Labels are the sorted
strings in the files.
"""

import dataclasses

from adapter_bert_tf.tasks.task import Columns, Source, Task

# The CrowdFlower exports have the encodings of their owners' spreadsheets; copies are often UTF-8.
LEGACY = ("utf-8", "cp1252", "latin-1")
MAC = ("utf-8", "mac_roman")
NO_BREAKS = (("</br>", " "),)
# Names of the file, with a space between.
AIRLINE = "Airline-Sentiment-2-w-AA.csv Tweets.csv"
MESSAGING = "Corporate-messaging-DFE.csv"
DISASTERS = "socialmedia-disaster-tweets-DFE.csv"
NEWS = "Full-Economic-News-DFE-839861.csv"
WARMING = "1377884570_tweet_global_warming.csv"
POLITICAL = "Political-media-DFE.csv political_social_media.csv"
PLUTCHIK = "primary-plutchik-wheel-DFE.csv"
PROGRESSIVE = "progressive-tweet-sentiment.csv"
ECONOMY = "us-economic-newspaper.csv"
# Columns.
STANCE = (
    "q1_from_reading_the_tweet_which_of_the_options_below_is_most_likely_to_be_true_about_"
    "the_stance_or_outlook_of_the_tweeter_towards_the_target"
)
OPINION = "q2_which_of_the_options_below_is_true_about_the_opinion_in_the_tweet"
NARRATIVE = "Consumer complaint narrative"
HEADLINE = Columns("TITLE", label="CATEGORY")


def _decided(label):
    return None if label == "Can't Decide" else label


def _sure(label):
    return None if label == "not sure" else label


def _yes_or_no(label):
    return {"Y": "Yes", "N": "No", "Yes": "Yes", "No": "No"}.get(label)


def _before_colon(label):
    return label.partition(":")[0]


def _task(name, *layouts, **more):
    return Task(name, name.replace("_", "-"), ("accuracy", "macro_f1"), layouts, **more)


def _csv(name, files, text, label, *, target=None, encodings=LEGACY, relabel=None, replace=()):
    """A task with one quoted CSV file; rows without a text or a label are left out."""
    source = Source(
        "",
        Columns(text, target, label=label),
        delimiter=",",
        quoted=True,
        encodings=encodings,
        drop_empty=True,
        replace=replace,
    )
    layouts = [{"all": dataclasses.replace(source, file=file)} for file in files.split()]
    return _task(name, *layouts, relabel=relabel)


def _economy(name, file):
    """A task about economic news."""
    return _csv(name, file, "text", "relevance", relabel=_sure, replace=NO_BREAKS)


def _newsgroups(file, columns, **options):
    return {
        f"all_{part}": Source(file.format(part), columns, **options) for part in ("train", "test")
    }


SPAM = Source("spam.csv", Columns("v2", label="v1"), delimiter=",", quoted=True, encodings=LEGACY)

TEXT_CLASSIFICATION = (
    _task(
        "20_newsgroups",
        _newsgroups("20news-bydate-{}/", Columns(0, label=1), encodings=("latin-1",)),
        _newsgroups("{}.tsv", Columns("text", label="label"), escaped=True),
    ),
    _csv("crowdflower_airline", AIRLINE, "text", "airline_sentiment"),
    _csv("crowdflower_corporate_messaging", MESSAGING, "text", "category", encodings=MAC),
    _csv("crowdflower_disasters", DISASTERS, "text", "choose_one", encodings=MAC, relabel=_decided),
    _economy("crowdflower_economic_news_relevance", NEWS),
    _csv("crowdflower_emotion", "text_emotion.csv", "content", "sentiment"),
    _csv("crowdflower_global_warming", WARMING, "tweet", "existence", relabel=_yes_or_no),
    _csv("crowdflower_political_audience", POLITICAL, "text", "audience"),
    _csv("crowdflower_political_bias", POLITICAL, "text", "bias"),
    _csv("crowdflower_political_message", POLITICAL, "text", "message"),
    _csv("crowdflower_primary_emotions", PLUTCHIK, "sentence", "emotion"),
    # Opinions of a tweet about a target; the labels are sentences, of which one begins with a name.
    _csv("crowdflower_progressive_opinion", PROGRESSIVE, "tweet", OPINION, target="target"),
    _csv(
        "crowdflower_progressive_stance",
        PROGRESSIVE,
        "tweet",
        STANCE,
        target="target",
        relabel=_before_colon,
    ),
    _economy("crowdflower_us_economic_performance", ECONOMY),
    # The paper's 157 classes are the issues; most complaints have no narrative.
    _csv("customer_complaint_database", "complaints.csv", NARRATIVE, "Issue"),
    _task(
        "news_aggregator",
        {"all": Source("newsCorpora.csv", Columns(1, label=4))},
        {f"all_{name}": Source(f"{name}.tsv", HEADLINE) for name in ("train", "valid", "test")},
    ),
    _task(
        "sms_spam_collection",
        {"all": Source("SMSSpamCollection", Columns(1, label=0))},
        {"all": SPAM},
    ),
)
