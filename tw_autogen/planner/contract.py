"""`AnswerContract`: the form that a request asks its answer to have, and whether an answer has it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_NO = re.compile(r"\b(?:not|never|no|without)\b|n't\b", re.I)
_ON_CONDITION = re.compile(r"\b(?:if|unless|or|either|instead)\b", re.I)
_AS_JSON = re.compile(
    r"\b(?:answer|reply|respond|response|return|output|give|report|format)\b(?P<between>.*?)\bjson\b(?!\s+(?:file|lines))",
    re.I,
)
_SAVES = re.compile(
    r"\b(?:sav(?:e|ed|ing)|writ(?:e|ten)|stor(?:e|ed)|export|dump|creat(?:e|ed)|draw|plot|keep)\b", re.I
)
_FILE = re.compile(
    r"\b(?:as|to|into|called|named|file)\s+[`'\"]?(?P<name>[\w./-]+\."
    r"(?:csv|tsv|json|jsonl|xlsx?|png|jpe?g|svg|pdf|txt|md|html?|parquet|ya?ml|zip|sqlite|db))\b",
    re.I,
)
_NAMED = re.compile(r"@(?P<name>\w+)\[(?P<value>[^\[\]\n]*)\]")
_WORDS = {"no": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DECIMALS = re.compile(
    rf"\b(?P<count>\d{{1,2}}|{'|'.join(_WORDS)})\s+(?:decimals?\b(?:\s+(?:places?|digits?))?|digits? after the)", re.I
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*\.(?P<decimals>\d+)(?!\w|[.-]\d)")


@dataclass(frozen=True)
class AnswerContract:
    """The form that a request asks its answer to have, as far as its English words say it plainly.

    Args:
        is_json: The answer is to be JSON, and nothing else.
        named: The names of `@name[value]` that it is to hold, each with what stood in the request's brackets.
        decimals: How many decimals its numbers have at most; None: not said.
        files: Files that are to be there.

    Only what leaves no choice is read: a sentence with "if" or "or" asks for no file.

    Example:
        >>> AnswerContract.read("Save the table as out.csv, and answer as @mean[number], with two decimals.")
        AnswerContract(is_json=False, named=(('mean', 'number'),), decimals=2, files=('out.csv',))

    Source: the answer form `@name[value]` is that of InfiAgent-DABench.
    """

    is_json: bool = False
    named: tuple[tuple[str, str], ...] = ()
    decimals: int | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def read(cls, request: str) -> AnswerContract:
        """Read it off the user's words."""
        sentences = [one for one in _SENTENCE.split(request) if one.strip()]
        counts = [_WORDS.get(one["count"].lower(), one["count"]) for one in _DECIMALS.finditer(request)]
        return cls(
            any(_wants_json(one) for one in sentences),
            tuple(dict.fromkeys((one["name"], one["value"].strip()) for one in _NAMED.finditer(request))),
            max(map(int, counts), default=None),
            tuple(dict.fromkeys(name for one in sentences for name in _files(one))),
        )

    def misfits(self, answer: str, folder: Path) -> list[str]:
        """Say in words for the model how an answer departs from it; empty if it fits.

        Args:
            answer: The whole answer.
            folder: Where files for the user lie.
        """
        problems = []
        if self.is_json and not _is_json(answer):
            problems.append("the User asked for JSON, and your message is not JSON and nothing else")
        given = {one["name"]: one["value"].strip() for one in _NAMED.finditer(answer)}
        for name, asked in self.named:
            if not given.get(name) or (given[name] == asked and not any(map(str.isdigit, asked))):
                problems.append(f"@{name}[…] with its value in the brackets is missing")
        many = [one.group() for one in _NUMBER.finditer(answer) if len(one["decimals"]) > (self.decimals or 0)]
        if self.decimals is not None and many:
            problems.append(f"{', '.join(many[:3])} has more than the {self.decimals} decimals that were asked for")
        missing = [name for name in self.files if not (folder / name).exists()]
        if missing:
            problems.append(f"there is no file {', '.join(missing)}, which the User asked for")
        return problems


def _wants_json(sentence: str) -> bool:
    found = _AS_JSON.search(sentence)
    return found is not None and not (_NO.search(sentence[: found.end()]) or _SAVES.search(found["between"]))


def _files(sentence: str) -> list[str]:
    saves = _SAVES.search(sentence)
    if not saves or _NO.search(sentence) or _ON_CONDITION.search(sentence):
        return []
    return [one["name"] for one in _FILE.finditer(sentence, saves.start())]


def _is_json(answer: str) -> bool:
    try:
        json.loads(answer)
    except ValueError:
        return False
    return True
