"""`AnswerForm`: the form that a request shows or names for its answer, and whether an answer has it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_NAMED = re.compile(r"(?<![\w@])@(?P<name>\w+)\[(?P<value>(?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]")
_JSON = re.compile(r"(?<![\w./-])json(?![\w-])", re.I)
_STRICT_JSON = re.compile(
    r"\b(?:only|nothing but|strict|pure|valid|raw)\b[^.?!\n]{0,30}\bjson\b(?!\s*\?)"
    r"|\bjson\b[^.?!\n]{0,30}\b(?:only|nothing else)\b",
    re.I,
)
_EMPTY = re.compile(
    r"\b(?:empty|blank)\s+(?:string|answer|reply|response|output|message|text|line)\b"
    r"|\b(?:answer|reply|respond|return|print|output|give|say)\s+nothing\b(?!\s+(?:but|else|more|other|except))"
    r"|\bleere[rns]?\s+(?:antwort|ausgabe|zeichenkette|string|text|zeile)\b",
    re.I,
)
_BEGINS = re.compile(r"""\s*[{\[]\s*["'{\[\d-]""")
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(?P<inside>.*?)\n?[ \t]*```\s*", re.I | re.S)
_PERCENTAGE = re.compile(r"[-+]?\d[\d.,]*\s*%")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\s*=\s*\S")


@dataclass(frozen=True)
class AnswerForm:
    """The form that a request shows for its answer, as `@name[value]`, or names: JSON.

    Names and syntax are checked, never prose, decimals or files.

    Args:
        named: The names of `@name[value]`, each with the placeholder between the request's brackets.
        json: The request speaks of JSON (not only of a file `x.json`).
        request: The user's words.

    Example:
        >>> form = AnswerForm.read("Answer as @mean[number].")
        >>> form.problems("@mean[number]"), form.problems("It is @mean[34.5].")
        (['@mean[number] still holds the placeholder: put the value there'], [])

    Source: the form `@name[value]` is that of InfiAgent-DABench.
    """

    named: tuple[tuple[str, str], ...] = ()
    json: bool = False
    request: str = ""

    @classmethod
    def read(cls, request: str) -> AnswerForm:
        """Read the form off the user's words."""
        named = dict.fromkeys((one["name"], one["value"].strip()) for one in _NAMED.finditer(request))
        return cls(tuple(named), _JSON.search(request) is not None, request)

    def problems(self, answer: str) -> list[str]:
        """Return how an answer departs from the form, in words for the model; empty if it fits.

        An answer to a request that speaks of JSON must be JSON and nothing else where most of it is an object or a
        list, or where the request says so ("only JSON").

        Args:
            answer: The whole answer.
        """
        problems = []
        strict = self.json and _STRICT_JSON.search(self.request) is not None
        if self.json and (strict or _most_is_json(answer)) and not is_json(answer):
            problems.append("the request asks for JSON, and your message is not valid JSON and nothing else")
        given = {one["name"]: one["value"].strip() for one in _NAMED.finditer(answer)}
        for name, placeholder in self.named:
            wrong = self._wrong_value(name, placeholder, given.get(name))
            if wrong:
                problems.append(wrong)
        return problems

    @property
    def may_be_empty(self) -> bool:
        """Whether the request asks for an empty answer in some case, as in "if there is none, an empty string"."""
        return _EMPTY.search(self.request) is not None

    def fits(self, answer: str) -> bool:
        """Return True if the request has a form that can be recognized in the answer, and the answer has it."""
        return bool(self.named and not self.problems(answer)) or (self.json and is_json(answer))

    def _wrong_value(self, name: str, placeholder: str, value: str | None) -> str:
        if not value:
            return f"@{name}[…] with its value in the brackets is missing"
        if value == placeholder and not any(map(str.isdigit, placeholder)):
            return f"@{name}[{value}] still holds the placeholder: put the value there"
        said = self.request.casefold()
        if value.casefold() == "nan" and not re.search(r"\bnan\b", said):
            return f"@{name}[{value}] is no value: find out why it is not a number, and put the value there"
        if _PERCENTAGE.fullmatch(value) and "%" not in said and "percent" not in said:
            return f"@{name}[{value}]: the bare number belongs there, without %"
        if _ASSIGNMENT.match(value) and "=" not in placeholder:
            return f"@{name}[{value}]: the bare value belongs there, without its name"
        return ""


def is_json(text: str) -> bool:
    """Return True if a text is a JSON object or list, and nothing else."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def unfenced_json(text: str) -> str:
    """Return the JSON of a text that is nothing but one fenced block of JSON; any other text as it is."""
    found = _FENCED.fullmatch(text)
    return found["inside"].strip() if found and is_json(found["inside"]) else text


def _most_is_json(text: str) -> bool:
    """Return True if a text begins as JSON, or more than half of it stands between braces or brackets."""
    if _BEGINS.match(text):
        return True
    spans = [text.rfind(close) - text.find(opening) for opening, close in ("{}", "[]") if opening in text]
    return max(spans, default=0) * 2 > len(text.strip())
