"""The 17 additional tasks of Houlsby et al. 2019 (Table 2), as their publishers have them.

The publishers give no division; the paper divides each task at random into 80% for training, 10%
for development, 10% for testing (section 3.3), and so does `data.examples`. Labels are the sorted
strings in the files.
"""

from adapter_bert_tf.tasks.task import Columns, Source, Task

# The CrowdFlower exports are in whatever their owners' spreadsheets wrote; copies are often UTF-8.
LEGACY = ("utf-8", "cp1252", "latin-1")
MAC = ("utf-8", "mac_roman")
NO_BREAKS = (("</br>", " "),)


def _without(*labels):
    """Leaves out the rows with these labels."""
    return lambda label: None if label in labels else label


def _task(name, *layouts, **more):
    return Task(name, name.replace("_", "-"), ("accuracy", "macro_f1"), layouts, **more)


def _csv(name, files, text, label, *, target=None, encodings=LEGACY, relabel=None, **source):
    """A task that is one quoted CSV file, which may go by several names.

    Rows without a text or a label are left out.
    """
    columns = Columns(text, target, label=label)
    layouts = [
        {
            "all": Source(
                file,
                columns,
                delimiter=",",
                quoted=True,
                encodings=encodings,
                drop_empty=True,
                **source,
            )
        }
        for file in files.split()
    ]
    return _task(name, *layouts, relabel=relabel)


POLITICAL = "Political-media-DFE.csv political_social_media.csv"
PROGRESSIVE = "progressive-tweet-sentiment.csv"
STANCE = (
    "q1_from_reading_the_tweet_which_of_the_options_below_is_most_likely_to_be_true_about_"
    "the_stance_or_outlook_of_the_tweeter_towards_the_target"
)
OPINION = "q2_which_of_the_options_below_is_true_about_the_opinion_in_the_tweet"
HEADLINE = Columns("TITLE", label="CATEGORY")

TEXT_CLASSIFICATION = (
    _task(
        "20_newsgroups",
        {
            f"all_{name}": Source(
                f"20news-bydate-{name}/", Columns(0, label=1), encodings=("latin-1",)
            )
            for name in ("train", "test")
        },
        {
            f"all_{name}": Source(f"{name}.tsv", Columns("text", label="label"), escaped=True)
            for name in ("train", "test")
        },
    ),
    _csv(
        "crowdflower_airline",
        "Airline-Sentiment-2-w-AA.csv Tweets.csv",
        "text",
        "airline_sentiment",
    ),
    _csv(
        "crowdflower_corporate_messaging",
        "Corporate-messaging-DFE.csv",
        "text",
        "category",
        encodings=MAC,
    ),
    _csv(
        "crowdflower_disasters",
        "socialmedia-disaster-tweets-DFE.csv",
        "text",
        "choose_one",
        encodings=MAC,
        relabel=_without("Can't Decide"),
    ),
    _csv(
        "crowdflower_economic_news_relevance",
        "Full-Economic-News-DFE-839861.csv",
        "text",
        "relevance",
        relabel=_without("not sure"),
        replace=NO_BREAKS,
    ),
    _csv("crowdflower_emotion", "text_emotion.csv", "content", "sentiment"),
    _csv(
        "crowdflower_global_warming",
        "1377884570_tweet_global_warming.csv",
        "tweet",
        "existence",
        relabel=lambda label: {"Y": "Yes", "N": "No", "Yes": "Yes", "No": "No"}.get(label),
    ),
    _csv("crowdflower_political_audience", POLITICAL, "text", "audience"),
    _csv("crowdflower_political_bias", POLITICAL, "text", "bias"),
    _csv("crowdflower_political_message", POLITICAL, "text", "message"),
    _csv("crowdflower_primary_emotions", "primary-plutchik-wheel-DFE.csv", "sentence", "emotion"),
    # What a tweet says of a target; the labels are sentences, of which one begins with a name.
    _csv("crowdflower_progressive_opinion", PROGRESSIVE, "tweet", OPINION, target="target"),
    _csv(
        "crowdflower_progressive_stance",
        PROGRESSIVE,
        "tweet",
        STANCE,
        target="target",
        relabel=lambda label: label.partition(":")[0],
    ),
    _csv(
        "crowdflower_us_economic_performance",
        "us-economic-newspaper.csv",
        "text",
        "relevance",
        relabel=_without("not sure"),
        replace=NO_BREAKS,
    ),
    # The paper's 157 classes are the issues; most complaints have no narrative.
    _csv("customer_complaint_database", "complaints.csv", "Consumer complaint narrative", "Issue"),
    _task(
        "news_aggregator",
        {"all": Source("newsCorpora.csv", Columns(1, label=4))},
        {f"all_{name}": Source(f"{name}.tsv", HEADLINE) for name in ("train", "valid", "test")},
    ),
    _task(
        "sms_spam_collection",
        {"all": Source("SMSSpamCollection", Columns(1, label=0))},
        {
            "all": Source(
                "spam.csv", Columns("v2", label="v1"), delimiter=",", quoted=True, encodings=LEGACY
            )
        },
    ),
)
