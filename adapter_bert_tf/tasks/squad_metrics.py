"""Exact match and F1 by SQuAD's official evaluators, which Model Garden carries."""

from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

# Names that Model Garden gives to the official script's `best_exact` and its kin.
BEST = {
    "best_exact": "final_exact",
    "best_exact_thresh": "final_exact_thresh",
    "best_f1": "final_f1",
    "best_f1_thresh": "final_f1_thresh",
}


def evaluate_v1(articles, predictions):
    """Scores SQuAD 1.1 predictions.

    The evaluator is asked question by question and the sums are divided once, as the official
    script does, so that the results are equal to the last digit.

    Args:
      articles: `data` of the SQuAD file.
      predictions: dict from question id to text; a question without one counts as wrong.

    Returns:
      dict with `exact_match` and `f1`, from 0 to 100.
    """
    exact = f1 = total = 0
    for qa in _questions(articles):
        one = squad_evaluate_v1_1.evaluate(_alone(qa), predictions)
        exact += one["exact_match"]
        f1 += one["final_f1"]
        total += 1
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}


def of_each(articles, predictions, version_2=False):
    """Dict from question id to (exact match, F1), from 0 to 1.

    Args:
      articles, predictions: as of `evaluate_v1`.
      version_2: by the evaluator of SQuAD 2.0, which knows questions without an answer.
    """
    found = {}
    for qa in _questions(articles):
        if version_2:
            qa = qa | {"answers": qa.get("answers") or []}
            one = squad_evaluate_v2_0.evaluate(_alone(qa), {qa["id"]: predictions[qa["id"]]})
            found[qa["id"]] = (one["exact"] / 100, one["f1"] / 100)
        else:
            one = squad_evaluate_v1_1.evaluate(_alone(qa), predictions)
            found[qa["id"]] = (one["exact_match"], one["final_f1"])
    return found


def _questions(articles):
    for article in articles:
        for paragraph in article["paragraphs"]:
            yield from paragraph["qas"]


def _alone(qa):
    """A question as all articles that there are."""
    return [{"paragraphs": [{"qas": [qa]}]}]


def evaluate_v2(articles, predictions, best_answers=None, null_odds=None):
    """Scores SQuAD 2.0 predictions, and searches the best threshold for no answer.

    Args:
      articles: `data` of the SQuAD file.
      predictions: dict from question id to text, "" for no answer.
      best_answers: dict from question id to the best text other than no answer.
      null_odds: dict from question id to the score of no answer minus that text's.

    Returns:
      dict with `exact_match`, `f1`, the same of the questions with and without an answer
      (`HasAns_f1`), and, given odds, `best_f1` and `best_f1_thresh`: what the best
      `null_score_diff_threshold` would reach. The official search says 0.0 where it is best to
      answer nothing at all, whatever the odds.
    """
    articles = [
        {
            "paragraphs": [
                {"qas": [qa | {"answers": qa.get("answers") or []} for qa in paragraph["qas"]]}
                for paragraph in article["paragraphs"]
            ]
        }
        for article in articles
    ]
    scores = squad_evaluate_v2_0.evaluate(articles, predictions)
    kept = {name: value for name, value in scores.items() if name.startswith(("HasAns", "NoAns"))}
    results = {"exact_match": scores["exact"], "f1": scores["f1"], **kept}
    if null_odds is not None:
        searched = squad_evaluate_v2_0.evaluate(articles, best_answers, null_odds)
        results |= {ours: searched[theirs] for ours, theirs in BEST.items()}
    return results


def evaluate(articles, predictions, version_2=False, best_answers=None, null_odds=None):
    """`evaluate_v2` or `evaluate_v1`."""
    if version_2:
        return evaluate_v2(articles, predictions, best_answers, null_odds)
    return evaluate_v1(articles, predictions)


def count_unlabelled(articles):
    """Number of questions that say neither their answers nor that there is none."""
    return sum(
        not (qa.get("answers") or qa.get("is_impossible"))
        for article in articles
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    )
