"""Exact match and F1 by SQuAD's official evaluators, which Model Garden contains."""

# Model Garden's names for `best_exact` and the like of the official script.
BEST = {
    "best_exact": "final_exact",
    "best_exact_thresh": "final_exact_thresh",
    "best_f1": "final_f1",
    "best_f1_thresh": "final_f1_thresh",
}


def questions_in(articles):
    """Yields the dict of each question, in file order."""
    for article in articles:
        for paragraph in article["paragraphs"]:
            yield from paragraph["qas"]


def with_questions(articles, ids):
    """Returns the articles with only those questions whose ids are among `ids`."""
    return [
        article
        | {
            "paragraphs": [
                paragraph | {"qas": [qa for qa in paragraph["qas"] if qa["id"] in ids]}
                for paragraph in article["paragraphs"]
            ]
        }
        for article in articles
    ]


def count_unlabelled(articles):
    """Counts the questions with neither answers nor the mark that there is none."""
    return sum(not (qa.get("answers") or qa.get("is_impossible")) for qa in questions_in(articles))


def evaluate_v1(articles, predictions):
    """Scores SQuAD 1.1 predictions, texts by question id: `exact_match` and `f1`, 0 to 100.

    The sums of all questions are divided once, as in the official script, so that the results are
    equal to the last digit. A question without a prediction counts as wrong.
    """
    exact = f1 = total = 0
    for qa in questions_in(articles):
        scores = _evaluator(1).evaluate(_as_articles([qa]), predictions)
        exact += scores["exact_match"]
        f1 += scores["final_f1"]
        total += 1
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}


def evaluate_v2(articles, predictions, best_answers=None, null_odds=None):
    """Scores SQuAD 2.0 predictions, and searches the best threshold for no answer.

    `predictions` are texts by question id, "" for no answer; `best_answers` the best other texts,
    and `null_odds` the score of no answer minus that of the other text.

    Returns:
      dict with `exact_match`, `f1`, the same of the questions with and without an answer
      (`HasAns_f1`), and, given odds, `best_f1` and `best_f1_thresh`: the result with the best
      `null_score_diff_threshold`. The official search returns 0.0 where it is best to answer
      nothing at all, whatever the odds.
    """
    articles = _as_articles(questions_in(articles))
    scores = _evaluator(2).evaluate(articles, predictions)
    by_kind = {n: value for n, value in scores.items() if n.startswith(("HasAns", "NoAns"))}
    results = {"exact_match": scores["exact"], "f1": scores["f1"], **by_kind}
    if null_odds is not None:
        best = _evaluator(2).evaluate(articles, best_answers, null_odds)
        results |= {name: best[garden_name] for name, garden_name in BEST.items()}
    return results


def scores_by_question(articles, predictions, version_2=False):
    """Dict from question id to (exact match, F1), from 0 to 1, of all predictions."""
    scores = {}
    for qa in questions_in(articles):
        article, name = _as_articles([qa]), qa["id"]
        if version_2:
            result = _evaluator(2).evaluate(article, {name: predictions[name]})
            scores[name] = (result["exact"] / 100, result["f1"] / 100)
        else:
            result = _evaluator(1).evaluate(article, predictions)
            scores[name] = (result["exact_match"], result["final_f1"])
    return scores


def _as_articles(questions):
    """Questions as one article, each with a list of answers."""
    qas = [qa | {"answers": qa.get("answers") or []} for qa in questions]
    return [{"paragraphs": [{"qas": qas}]}]


def _evaluator(version):
    """The official evaluator of SQuAD 1.1 or 2.0; its module imports TensorFlow."""
    from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

    return squad_evaluate_v1_1 if version == 1 else squad_evaluate_v2_0
