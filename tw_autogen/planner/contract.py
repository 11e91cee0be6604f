"""`AnswerContract`: the form that a request asks its answer to have, and whether an answer has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tw_autogen import bounded_json
from tw_autogen.safe_folder import SafeFolder

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_NO = re.compile(r"\b(?:not|never|no|without)\b|n't\b", re.I)
_ON_CONDITION = re.compile(r"\b(?:if|unless|or|either|instead)\b", re.I)
_ASKS = re.compile(r"\s*(?:what|which|why|when|where|who|how|does|do|did|is|are|was|were)\b.*\?\s*$", re.I | re.S)
_HOW = re.compile(r"\bhow\s+(?:to|would|do|does|did|can|could|should|is|was)\b", re.I)
_AS_JSON = re.compile(
    r"\b(?:answer|reply|respond|response|return|output|give|report|format)\b"
    r"(?:(?P<between>[^,]*?)\b(?:as|in|with)|(?:\s+(?:me|back|must|should|has|to|be|is))*)"
    r"(?:\s+(?:a|an|one|only|just|single|valid|strict|pure|plain|raw))*\s+json\b"
    r"(?!['’]|\s+(?:files?|lines|columns?|fields?|keys?|schema|documents?|is|are|that|in|from|for)\b)",
    re.I,
)
_TELLS = re.compile(r"\b(?:how|which|what|whether|that|is|are|was|were)\b", re.I)
_SAVES = re.compile(
    r"\b(?:sav(?:e|ing)|writ(?:e|ing)|store|export|dump|create|draw|plot|keep|be\s+(?:saved|written|stored|created))\b",
    re.I,
)
_FILE = re.compile(
    r"\b(?P<by>as|to|into|called|named|file)\s+[`'\"]?(?P<name>[\w./-]+\."
    r"(?:csv|tsv|json|jsonl|xlsx?|png|jpe?g|svg|pdf|txt|md|html?|parquet|ya?ml|zip|sqlite|db))\b",
    re.I,
)
_DESCRIBED = re.compile(r"\b(?:was|were|is|are|been|has|had)\s+\w+\s+$", re.I)
_SOURCE = re.compile(r"\b(?:from|of|on|with|about|using|reads?|loads?)\s+(?:(?:the|a|an|my|our)\s+)?(?:\w+\s+)?$", re.I)
_SOURCE_IN = re.compile(r"\w\s+in\s+(?!(?:the|a|an)\s+(?:file\s+)?$)", re.I)
_IN = re.compile(r"\bin\b", re.I)
_CLAUSE = re.compile(r"\b(?:what|that|which|how)\b", re.I)
_NAMED = re.compile(r"(?<!\w)@(?P<name>\w+)\[(?P<value>[^\[\]\n]*)\]")
_FORM = re.compile(r"\b(?:answer|form|format|respond|reply|output|return|report|print)\b|\bas\s+`?@", re.I)
_WORDS = {"no": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DECIMALS = re.compile(
    r"(?:(?:\b(?:to|with|exactly|only|just|most|use|give|show|keep)\s+|^\s*|\()"
    rf"(?P<count>\d{{1,2}}|{'|'.join(_WORDS)})|\b(?P<none>no))"
    r"\s+(?:decimals?\b(?:\s+(?:places?|digits?))?|digits? after the(?:\s+\w+)?)(?!\s+(?:or\s+more|of|is|are)\b)",
    re.I,
)
_OF_DATA = re.compile(
    r"\b(?:has|have|had|contains?|precision)\b|\bround\w*\s+(?:(?:the|each|all|every)\s+)*(?:columns?|values|rows)\b",
    re.I,
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]{0,40}\.(?P<decimals>\d+)(?!\w|[.-]\d)")
_LONGEST_SENTENCE = 1000


@dataclass(frozen=True)
class AnswerContract:
    """The form that a request asks its answer to have, as far as its English words say it plainly.

    Args:
        is_json: The answer is to be JSON, and nothing else.
        named: The names of `@name[value]` that it is to hold, each with what stood in the request's brackets.
        decimals: How many decimals its numbers have at most; None: not said.
        files: Files that are to be there.

    Only what leaves no choice is read: a sentence with "if" or "or" asks for no file, one of more than 1000 characters
    for nothing.

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
        sentences = [one for one in _SENTENCE.split(request) if one.strip() and len(one) <= _LONGEST_SENTENCE]
        named = _NAMED.finditer(request) if _FORM.search(request) else ()
        return cls(
            any(_wants_json(one) for one in sentences),
            tuple(dict.fromkeys((one["name"], one["value"].strip()) for one in named)),
            max((count for one in sentences for count in _decimals(one)), default=None),
            tuple(dict.fromkeys(name for one in sentences for name in _files(one))),
        )

    def misfits(self, answer: str, *folders: Path) -> list[str]:
        """Say in words for the model how an answer departs from it; empty if it fits.

        Args:
            answer: The whole answer.
            *folders: Where files for the user may lie; each file has to be in one of them.
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
        missing = [name for name in self.files if not any(_is_there(folder, name) for folder in folders)]
        if missing:
            problems.append(f"there is no file {', '.join(missing)}, which the User asked for")
        return problems


def _is_there(folder: Path, name: str) -> bool:
    try:
        with SafeFolder(folder) as opened:
            return opened.has_file(name)
    except OSError:
        return False


def _wants_json(sentence: str) -> bool:
    found = _AS_JSON.search(sentence)
    if found is None or _ASKS.match(sentence) or _NO.search(sentence[: found.end()]):
        return False
    between = found["between"] or ""
    return not (_SAVES.search(between) or _TELLS.search(between))


def _decimals(sentence: str) -> list[int]:
    """Give the numbers of decimals that are asked for, not those that data is said to have or to be saved with."""
    if _ASKS.match(sentence):
        return []
    counts = []
    for clause in sentence.split(","):
        found = _DECIMALS.search(clause)
        if found and not (_NO.search(clause[: found.start()]) or _OF_DATA.search(clause) or _files(clause)):
            count = (found["count"] or found["none"]).lower()
            counts.append(int(_WORDS.get(count, count)))
    return counts


def _files(sentence: str) -> list[str]:
    """Give the names of files that are to be made, not of those to be read or made before."""
    saves = _SAVES.search(sentence)
    if not saves or _NO.search(sentence) or _ON_CONDITION.search(sentence) or _ASKS.match(sentence):
        return []
    if _HOW.search(sentence[: saves.start()]):
        return []
    found = [(one, sentence[saves.end() : one.start()]) for one in _FILE.finditer(sentence, saves.start())]
    return [one["name"] for one, before in found if not _is_source(saves[0].lower(), one["by"].lower(), before)]


def _is_source(verb: str, by: str, before: str) -> bool:
    """Say whether a file that is named after these words is one to read, or only told of."""
    if by in ("as", "to", "into"):
        return bool(_DESCRIBED.search(before) or (by != "as" and _CLAUSE.search(before)))
    drawn = verb in ("draw", "plot", "create") and _IN.search(before)
    return bool(_SOURCE.search(before) or _CLAUSE.search(before) or _SOURCE_IN.search(before) or drawn)


def _is_json(answer: str) -> bool:
    try:
        bounded_json.loads(answer)
    except ValueError:
        return False
    return True
