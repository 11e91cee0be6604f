"""What type of work a task is, read from its words, so that plugins made for that type come first."""

from __future__ import annotations

from collections.abc import Mapping

from tw_autogen.model import LexicalRanker

TASK_TYPES: Mapping[str, str] = {
    "exploring": "explore inspect describe profile summarise overview distribution correlation histogram statistics "
    "eda compare count",
    "preparing": "clean impute fill missing duplicates outliers convert parse preprocess preprocessing scale normalise "
    "normalize standardise standardize rescale encode encoding",
    "features": "features feature engineer engineering encode encoding bins discretise polynomial interactions cross "
    "select selection extract derive columns predictors",
    "model": "model train fit predict prediction classifier classification regression forecast cluster clustering "
    "hyperparameters boosting forest",
    "evaluating": "evaluate evaluation metric accuracy precision recall auc confusion validate validation score error "
    "residuals holdout",
    "charting": "plot chart draw graph figure visualise visualize heatmap scatter bars line picture",
    "fetching": "fetch pull download query database sql api load read import scrape web page search",
    "reporting": "report write summary document slides email send notify export publish",
}
"""The types, each with the words by which a task of that type is known; a plugin names those it serves as `tags`."""

_RANKER = LexicalRanker()


def task_type(task: str) -> str:
    """Return the type of work that a task is by its words; empty if none of them says.

    Example:
        >>> task_type("Encode the categories as features, and drop those of low variance")
        'features'
        >>> task_type("What is 6*7?")
        ''

    Source: Data Interpreter's task types, by which its TypeMatch recommender takes tools. Differs: read from the words
    without a model call, and a match only raises a plugin's rank.
    """
    ranked = _RANKER.rank(task, tuple(TASK_TYPES.values()))
    return list(TASK_TYPES)[ranked[0][0]] if ranked else ""
