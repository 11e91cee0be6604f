"""`RequestedFormat`: the form that a request shows or names for its answer, and whether an answer has it."""

from __future__ import annotations

import functools
import itertools
import json
import re
from dataclasses import dataclass
from typing import Literal

_NAMED = re.compile(r"(?<![\w@])@(?P<name>\w+)\[(?P<value>[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*)\]")
_SHOWS = frozenset({
    "answer", "as", "exactly", "form", "format", "give", "in", "into", "like", "of", "output", "print", "reply",
    "report", "return", "so", "use", "with", "write", "and", "or", "by", "als", "mit", "genau", "im", "und",
    "oder", "wie", "only", "just", "nur", "ausschließlich", "seulement", "uniquement", "solo", "solamente", "soltanto",
    "comme", "como", "come",
})  # fmt: skip
_GOES_ON = frozenset({
    "where", "with", "and", "or", "for", "if", "in", "rounded", "as", "please", "only", "to", "on", "at", "is",
    "wobei", "und", "oder", "mit", "bitte",
})  # fmt: skip
_WORD_CHARS = 40
_WORD_BEFORE = re.compile(r"([^\W\d_]{1,40})[ \t]{1,9}\Z")
_WORD_AFTER = re.compile(r"[ \t]{1,9}([^\W\d_]{1,40})")
_BELOW_SERIES = re.compile(r"\n(?:Freq: [^,\n]{1,20}, )?(?:Name: [^\n]{0,100}, )?dtype: [\w\[\], ]{1,40}(?=\n|\Z)")
_UNBRACKETED = (
    r"(?<![\w@])[*`]{{0,2}}@{name}[*`]{{0,2}}"
    r"(?:\((?P<round>[^()\n]+)\)|\{{(?P<curly>[^{{}}\n]+)\}}|[ \t]?[:=][*`]{{0,2}}[ \t]?(?P<after>{value}))"
)
_NUMBER = r"[-+]?\d(?:[\d.,]*\d)?(?:[eE][-+]?\d+)?%?(?=[\s,;.)*`]|\Z)"
_REST = r"[^\s@\[\]{}()*][^@\[\]\n;]{0,200}?(?=\s{0,9}(?:[,;]?\s{0,9}@\w|;|\n|\Z))"
_JSON = re.compile(r"(?<![\w./-])json(?![\w-])", re.I)
_ONLY = r"(?:only|just|nothing but|strictly|strict|pure|valid|raw)"
_BETWEEN = (
    r"(?:\s{1,3}(?:me|us|back|it|is|be|must|should|to|with|in|as|an?|the|your|my|please|single|one|of|plain|compact"
    rf"|minified|well-formed|properly|formatted|{_ONLY})){{0,6}}"
)
_JSON_ITSELF = (
    r"\s{1,3}json\b(?!\s{0,3}\?)(?!\s{1,3}(?:(?:file|column|field|record|row|line|key|value|part)s?|entries|documents"
    r"|from|in(?!\syour)|and\s(?:save|store|write))\b)"
)
_STRICT_JSON = re.compile(
    r"\b(?:answer|reply|respond|response|return|output|print|give|send|provide|want|need)\b"
    rf"(?:{_BETWEEN}|[^.?!\n]{{0,60}}\s(?:as|in|must be|should be)(?:\san?)?)\s{{1,3}}{_ONLY}{_BETWEEN}{_JSON_ITSELF}"
    rf"|(?:\A|[.!?;:,(\n]\s{{0,3}})(?:only|just|nothing but){_BETWEEN}{_JSON_ITSELF}"
    r"|\bjson(?:\s(?:object|array|list|format|string))?[\s,(-]{1,3}(?:and\s)?"
    r"(?:only(?=\s{0,3}(?:[.,;:!)\n]|please|\Z))|nothing (?:else|more))\b"
    r"|\b(?:antwort|gib|liefer|répond|renvoi|retourn|responde|devuelv|rispond)\w{0,4}\b[^.?!\n]{0,40}"
    r"\s(?:nur|ausschließlich|uniquement|seulement|solo|solamente|soltanto)\s(?:(?:mit|als|in|en|du|avec|con)\s)?json\b"
    r"(?![\w-])(?!\s(?:datei|spalte|fichier|colonne|archivo|columna))",
    re.I,
)
"""Demands JSON of the answer; `only the JSON column` and `rows that hold valid JSON` are data."""
_DATA_AFTER = re.compile(
    r"[\s-](?:files?|columns?|fields?|records?|rows?|lines?|keys?|documents?|entries|in\s(?!json)|from|has|have|holds?|contains?"
    r"|datei\w{0,2}|spalten?|fichiers?|colonnes?|archivos?)\b",
    re.I,
)
_GIVEN_BEFORE = re.compile(r"\b(?:the|this|that|my|its|examples? of|das|dieses|le|el|il)\s\Z", re.I)
_DEMANDED_BEFORE = re.compile(
    r"\b(?:(?:answer|reply|respond|return|output|print|give|send|provide|write)\b[^.?!\n]{0,25}|as\s|als\s|valid\s)\Z",
    re.I,
)
_AROUND_CHARS = 40
_EMPTY = re.compile(
    r"\b(?:empty|blank)\s+(?:string|answer|reply|response|output|message|text|line)\b"
    r"|\b(?:answer|reply|respond|return|print|output|give|say)\s+nothing\b(?!\s+(?:but|else|more|other|except))"
    r"|\bleere[rns]?\s+(?:antwort|ausgabe|zeichenkette|string|text|zeile)\b",
    re.I,
)
_ALONE = re.compile(
    r"\b(?:and|but|,)\s(?:absolutely\s)?nothing (?:else|more)\b(?!\s(?:in|on|at|from|is|was|has|than)\b)"
    r"|(?:\A|[.,;:!(\n-]\s{0,3})nothing (?:else|more)\b(?!\s(?:in|on|at|from|is|was|has|than)\b)"
    r"|\bnothing (?:but|except|besides) (?:the|this|that|these|`?@)"
    r"|\b(?:no|without(?: any)?)(?P<more> (?:extra|additional|further|other|more|surrounding))? "
    r"(?:explanations?|commentary|comments|prose|text|words|sentences?)\b"
    r"(?(more)|(?=\s{0,3}(?:[.,;:!?)@`\n]|\Z)|\s(?:around|before|after|beside|outside|or|please)\b))"
    r"|\b(?:just|only|exactly) (?:in )?(?:this|the|that) (?:form|format)\b"
    r"|\b(?:answer|reply|respond|response|output|print|return|give|write|send)"
    r"(?: (?:me|back|with|is|must be|should be))? (?:only|just)\s{1,3}(?:(?:with|in|as|the|this|that|one|a|an)\s){0,3}"
    r"(?:@|`|line|answer|value|result|number|form|format|brackets?|tags?)"
    r"|\b(?:only|just|nur|ausschließlich|seulement|uniquement|solo|solamente|soltanto)\s{1,3}(?:(?:mit|als|par|con)\s)?`?@"
    r"|\bnichts (?:anderes|sonst|weiter)\b(?!\s(?:in|im|auf|am)\b)|\bsonst nichts\b"
    r"|\bohne (?:weiteren? )?(?:erklärung|worte|text|kommentar)|\bnur (?:diese|in dieser|das) (?:form|format)\b"
    r"|\brien d['’]autre\b|\bsans (?:aucune? )?(?:explication|autre|commentaire|texte)"
    r"|\bnada m[áa]s\b|\bsin (?:ninguna )?(?:explicaci|comentario|texto|m[áa]s)"
    r"|\bnient['’]altro\b|\bsenza (?:alcuna )?(?:spiegazion|comment|altro testo|testo)",
    re.I,
)
_DEMAND = (
    r"\b(?:answer|reply|respond|response|output)\s+(?:(?:must|should|shall|has|needs|to|be|is|with|as|in|using|a|an|the|"
    r"of|list|values|it|them|me|please|simply|form|format|single|plain|only|just|nothing|but|exactly|one)\s+){0,9}?"
)
"""`Answer must be a list of values in …`: no word in between says anything else."""
_NUMBER_ALONE = re.compile(
    rf"{_DEMAND}(?:(?:only|just|nothing but)\s+(?:(?:a|one|the)\s+)?(?:(?:single|bare|plain)\s+)?"
    r"(?:number|integer|numeric value)|(?:a|one|the)\s+(?:number|integer)\s+(?:only|alone|and nothing else))"
    r"(?=\s*(?:[.,;:!()\n]|\Z)|\s+(?:rounded|expressed|with|without|in|as|please|and nothing|to)\b)",
    re.I,
)
_COMMA_LIST = re.compile(
    rf"{_DEMAND}comma[- ]separated\s+(?:list|values|numbers|names|ids?)\b(?!\s*(?:file|\(csv))", re.I
)
_MORE_WANTED = re.compile(r"\b(?:each|both|every|respectively|then|also|as well|explain\w*|because|why)\b|\?", re.I)
_BARE_NUMBER = re.compile(r"[-+−]?\d(?:[\d.,]*\d)?(?:[eE][-+]?\d+)?")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_INTRODUCED = re.compile(r"\b(?:is|are|was|were|following|below)\s*:\s*\S", re.I)
_MARKED_LINE = re.compile(r"[ \t]{0,20}(?:[-*•]|\d{1,3}[.)])\s")
_MAX_WORDS, _MIN_INNER = 2, 2
_AND = re.compile(r"\b(?:and|und)\b")
_SEPARATORS = " \t\r\n,;*`"
_BEGINS = re.compile(r"""[{\[]\s*["'{\[\d-]""")
_PERCENT = re.compile(r"%|percent|prozent|pourcent|porcent|por cien|per ?cento|百分", re.I)
_PERCENTAGE = re.compile(r"[-+]?\d[\d.,]*\s*%")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\s*=\s*\S")
_NO_JSON = re.compile(r"[:\[,]\s{0,9}-?(?:NaN|Infinity)\b")
_DECIMALS = re.compile(r"\b(\d|one|two|three|four|five|six)[ -](?:decimals\b|decimal (?:place|digit|point)s?\b)", re.I)
_UNROUNDED = re.compile(r"[-+]?\d*\.(\d{7,})")
"""A number with more decimals than are printed of one that somebody has rounded."""


@dataclass(frozen=True)
class RequestedFormat:
    """The form that a request shows for its answer, as `@name[value]`, or names: JSON, a number, a list.

    Names and syntax are checked, never prose or files; of decimals, whether a value was left unrounded where the
    request asks for some. A number or a comma-separated list must stand alone where the request demands nothing else.

    Args:
        named: The names of `@name[value]`, each with the placeholder between the request's brackets; a name that is
            shown with several of them (`@r[yes] or @r[no]`) may hold any.
        json: The request speaks of JSON (not only of a file `x.json`).
        request: The user's words.
        bare: `number` or `list` where the answer must be that and nothing else; empty: any.

    Example:
        >>> form = RequestedFormat.read("Answer as @mean[number].")
        >>> form.problems("@mean[number]"), form.problems("It is @mean[34.5].")
        (['@mean[number] still holds the placeholder: put the value there'], [])

    Source: the form `@name[value]` is that of InfiAgent-DABench.
    """

    named: tuple[tuple[str, str], ...] = ()
    json: bool = False
    request: str = ""
    bare: Literal["", "number", "list"] = ""

    @classmethod
    def read(cls, request: str) -> RequestedFormat:
        """Return the form that the user's words show.

        `@name[value]` in the middle of a sentence, as in "my colleague anna @team[data] says", is no form.
        """
        shown = (match for match in _NAMED.finditer(request) if not _is_mention(request, match))
        named = dict.fromkeys((one["name"], one["value"].strip()) for one in shown)
        json_asked = _JSON.search(request) is not None
        return cls(tuple(named), json_asked, request, "" if named or json_asked else _bare_form(request))

    def problems(self, answer: str) -> list[str]:
        """Return how an answer departs from the form, in words for the model; empty if it fits.

        An answer to a request that asks for JSON, and doesn't only speak of it (`the JSON column`), must be JSON and
        nothing else where most of it is an object or a list, or where the request says so ("only JSON").

        Args:
            answer: The whole answer.
        """
        problems = []
        strict = self.json and _STRICT_JSON.search(self.request) is not None
        wanted = strict or (self.json and _max_is_json(answer) and not _only_mentions_json(self.request))
        if wanted and not is_json(answer):
            problems.append("the request asks for JSON, and your message is not valid JSON and nothing else")
            if _NO_JSON.search(answer):
                problems[-1] += ": put null in the place of NaN and Infinity"
        given = {match["name"]: match["value"].strip() for match in _NAMED.finditer(answer)}
        for name, placeholder in self.named:
            shown = [one for other, one in self.named if other == name and not any(map(str.isdigit, one))]
            wrong = self._wrong_value(name, placeholder if len(shown) < 2 else " or ".join(shown), given.get(name))
            if wrong and wrong not in problems:
                problems.append(wrong)
        if self.bare == "number" and _is_worded_number(answer, self.request):
            problems.append("the request asks for a number and nothing else: send it without words around it")
        if self.bare == "list" and _is_worded_list(answer):
            problems.append("the request asks for a comma-separated list and nothing else: send it in one line, alone")
        return problems

    def shaped(self, answer: str) -> str:
        """Return an answer with `@name: value`, `@name = value` and `@name(value)` as `@name[value]`.

        What pandas prints below a Series, its name and type, is left out.

        A name whose brackets stand in the answer already is left alone, and so is all else, unless the request wants
        the form and nothing else: then words around it are taken off.

        Example:
            >>> RequestedFormat.read("Answer as @r[value].").shaped("@r: 0.31 (Pearson)")
            '@r[0.31] (Pearson)'
        """
        answer = _BELOW_SERIES.sub("", answer)
        given = {match["name"] for match in _NAMED.finditer(answer)}
        for name in dict.fromkeys(name for name, _ in self.named if name not in given):
            pattern = _UNBRACKETED.format(name=re.escape(name), value=f"{_NUMBER}|{_REST}")
            answer = re.sub(pattern, functools.partial(_to_bracket_form, name), answer)
        if not self.named or not _ALONE.search(self.request) or self.problems(answer):
            return answer
        names = dict(self.named)
        matches = [match for match in _NAMED.finditer(answer) if match["name"] in names]
        if len(matches) != len(names):  # a name with two values
            return answer
        between = [answer[one.end() : two.start()] for one, two in itertools.pairwise(matches)]
        if all(map(_parts_only, between)):
            return answer[matches[0].start() : matches[-1].end()]
        return "\n".join(one[0] for one in matches)

    def is_all_of(self, answer: str) -> bool:
        """Return True if an answer is the form `@name[value]` that the request shows, and nothing else."""
        fits = bool(self.named) and not self.problems(answer)
        return fits and _parts_only(_NAMED.sub("", answer))

    @property
    def may_be_empty(self) -> bool:
        """Whether the request asks for an empty answer in some case, as in "if there is none, an empty string"."""
        return _EMPTY.search(self.request) is not None

    def fits(self, answer: str) -> bool:
        """Return True if the request has a form that can be recognized in the answer, and the answer has it."""
        if self.bare:
            items = answer.split(",") if self.bare == "list" else [answer]
            return all(_BARE_NUMBER.fullmatch(item.strip()) for item in items)
        return bool(self.named and not self.problems(answer)) or (self.json and is_json(answer))

    def is_alone(self, answer: str) -> bool:
        """Return True if nothing may stand beside an answer: it has the form that was asked for, or it is JSON."""
        return is_json(answer) or self.fits(answer)

    def _wrong_value(self, name: str, placeholder: str, value: str | None) -> str:
        if not value:
            return f"@{name}[…] with its value in the brackets is missing"
        if _is_placeholder(value, placeholder):
            return f"@{name}[{value}] still holds the placeholder: put the value there"
        request = self.request.casefold()
        if value.casefold() == "nan" and not re.search(r"\bnan\b", request):
            return f"@{name}[{value}] is no value: find out why it is not a number, and put the value there"
        if _PERCENTAGE.fullmatch(value) and not _PERCENT.search(request):
            return f"@{name}[{value}]: the bare number belongs there, without %"
        if _ASSIGNMENT.match(value) and "=" not in placeholder:
            return f"@{name}[{value}]: the bare value belongs there, without its name"
        if _UNROUNDED.fullmatch(value) and _DECIMALS.search(self.request):
            return f"@{name}[{value}] was left unrounded: the request says how many decimals belong there"
        return ""


def _bare_form(request: str) -> Literal["", "number", "list"]:
    """Return which form a request demands for its whole answer; empty if it asks several questions, or for more."""
    number, listed = _NUMBER_ALONE.search(request), _COMMA_LIST.search(request)
    found = number or listed
    if found is None or (number and listed) or request.count("?") > 1:
        return ""
    sentence = re.split(r"[.!\n](?:\s|\Z)", request[found.end() :], maxsplit=1)[0]
    if _MORE_WANTED.search(sentence):
        return ""
    return "number" if number else "list"


def _is_worded_number(answer: str, request: str) -> bool:
    """Return whether words other than a unit stand around a number; words that the request names are an answer, too."""
    letters = _LETTERS.findall(answer)
    named = answer.strip(" \n.'\"").casefold() in request.casefold()
    return len(letters) > _MAX_WORDS and any(map(str.isdigit, answer)) and not named


def _is_worded_list(answer: str) -> bool:
    """Return whether a sentence stands around a list, or its items stand in lines of their own."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    if len(lines) > 1 and not all(line.endswith(",") for line in lines[:-1]):
        return any(line.count(",") > 1 for line in lines) or sum(map(bool, map(_MARKED_LINE.match, lines))) > 1
    items = [part.strip().rstrip(".") for part in " ".join(lines).split(",")]
    numbers = [_BARE_NUMBER.fullmatch(item) is not None for item in items]
    inner = numbers[1:-1]
    around = len(inner) >= _MIN_INNER and all(inner) and not (numbers[0] and numbers[-1])
    return around or (len(items) > 1 and _INTRODUCED.search(items[0]) is not None)


def _is_placeholder(value: str, placeholder: str) -> bool:
    """Return True for the placeholder, or dots; `{x_value}`, `X value` and the like are `x_value` too."""
    if any(map(str.isdigit, placeholder)):
        return False
    made_up = "_" in placeholder or value[:1] in ("{", "<")
    same = made_up and re.sub(r"[\W_]", "", value.casefold()) == re.sub(r"[\W_]", "", placeholder.casefold())
    return value == placeholder or same or not value.strip(" .…_")


def _is_mention(request: str, match: re.Match[str]) -> bool:
    """Return True if words of a sentence stand on both sides, and none of them introduces or explains a form."""
    before = _WORD_BEFORE.search(request[max(0, match.start() - _WORD_CHARS) : match.start()])
    after = _WORD_AFTER.match(request, match.end())
    if before is None or after is None:
        return False
    return before[1].casefold() not in _SHOWS and after[1].casefold() not in _GOES_ON


def _to_bracket_form(name: str, match: re.Match[str]) -> str:
    value = match["round"] or match["curly"] or match["after"]
    return f"@{name}[{value.strip()}]"


def is_json(text: str) -> bool:
    """Return True if a text is a JSON object or list, and nothing else; NaN and Infinity are no JSON."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _only_mentions_json(request: str) -> bool:
    """Return whether JSON is data wherever a request speaks of it: `the JSON column`, `an example of JSON`."""
    for match in _JSON.finditer(request):
        before = request[max(0, match.start() - _AROUND_CHARS) : match.start()]
        is_data = _DATA_AFTER.match(request, match.end()) or _GIVEN_BEFORE.search(before)
        if not is_data or _DEMANDED_BEFORE.search(before):
            return False
    return True


def unfenced_json(text: str) -> str:
    """Return the JSON of a text that is nothing but one fenced block of JSON; any other text as it is."""
    first, _, rest = text.strip().partition("\n")
    inside = rest.removesuffix("```").strip()
    fenced = first.rstrip(" \t\r").lower() in ("```", "```json") and rest.endswith("```")
    return inside if fenced and is_json(inside) else text


def _max_is_json(text: str) -> bool:
    """Return True if a text begins as JSON, or more than half of it stands between braces or brackets."""
    match = _BEGINS.search(text)
    if match is None:
        return False
    end = max(text.rfind("}"), text.rfind("]"))
    return not text[: match.start()].strip() or (end - match.start()) * 2 > len(text.strip())


def _parts_only(text: str) -> bool:
    """Return True if a text between the parts of a form holds signs, blanks and `and` only."""
    return not _AND.sub("", text).strip(_SEPARATORS)
