"""Forms in which loose models send the Planner's reply: as a call of a tool, or as code alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tw_autogen.errors import Unreadable
from tw_autogen.model import read_code, read_object
from tw_autogen.python_source import PYTHON_LANGUAGE

_LONG_NAME = 8
_ALIASES = {
    "User": ("user", "human", "enduser", "userproxy", "customer", "client"),
    "CodeInterpreter": ("coder", "interpreter", "codeagent", "codeexecutor", "codegenerator", "programmer", "python"),
}
"""What loose models call these two, folded as by `folded`."""
_ARGUMENTS = ("arguments", "parameters", "args", "input", "function")
_RECEIVER, _CODE = {"sendto", "to", "recipient", "receiver"}, {"code", "python", "pythoncode"}
_CALLED = {"name", "type", "id", "tool", "recipient", *_ARGUMENTS}
_MARKED = re.compile(
    rf"^[ \t]*(?:```|~~~)[ \t]*{PYTHON_LANGUAGE}|<\|python_tag\|>"
    r"|^[ \t]*<(?:tool_call|function_call|code|python|execute)\b",
    re.I | re.M,
)
_ASKS = (
    r"\b(?:write|show|give|send|share|provide|include|print|display|post|paste|see|need|want|generate|create"
    r"|schreib\w{0,4}|zeig\w{0,4}|gib|schick\w{0,4}|brauch\w{0,3}|montre\w{0,3}|[ée]cri\w{1,4}|donne\w{0,2}|envoie\w{0,2}|ens[eé]ñ\w{1,5}"
    r"|mu[eé]stra\w{0,3}|escrib\w{1,4}|dame|mostra\w{0,3}|scriv\w{1,4}|dammi|fammi\svedere)"
    r"(?:[\s-]{1,3}(?:me|us|out|mir|uns|moi|nous|just|only|also|please|bitte|nur|auch|solo|juste)){0,3}\s{1,3}"
)
_PLAIN_KINDS = (
    r"(?:(?:python|pandas|sql|r|small|short|simple|little|complete|full|whole|entire|source|quick|clean|kleine\w?|kurze\w?"
    r"|einfache\w?|vollständige\w?|petite?|pequeñ[oa]|piccol[oa])\s{1,3}){0,3}"
)
_ONE = r"(?:an?|some|one|eine?n?|une?|una|uno)\s{1,3}"
_THE = (
    rf"(?:{_ONE}|(?:the|your|this|that|all|its|de[nrs]|das|die|deine?n?|ihre?n?|le|la|ton|votre|du|el|tu|il|lo)"
    r"\s{1,3})?"
)
_GOES_ON = (
    r"(?=\s{0,3}(?:[.,;:!?()\n]|\Z)|\s{1,3}(?:you|to|please|here|first|itself|without|so|but|used|behind|instead|only|it"
    r"|for\s\w+ing|for\s(?:it|this|that)\b|and\s(?:don|do\snot|not|explain|its?\s)|in\s(?:the|your|an?|python)\b"
    r"|that\s(?!is\b|was\b|has\b|occurs|appears|sells)\w+s\b|bitte|dafür|dazu|python|qui|que|pour|para|che|per|sans|sin|senza))"
)
_SHOWN = re.compile(
    # not to be run
    r"(?:(?:\A|[.,;:!?(\n]\s{0,3}|\b(?:and|but|please|just)\s)(?:don['’]?t|do\snot|never)\s(?:run|execute)\b"
    r"|\bwithout\s(?:running|executing)\s(?:it|this|that|them|any|the\s(?:code|script|program|function))"
    r"|\bnicht\sausf(?:ühr|uehr)|\bohne\s[^.?!\n]{0,20}ausz(?:uführ|ufuehr)|\bführ\w{0,2}\s[^.?!\n]{0,25}\snicht\saus\b"
    r"|\bsans\s(?:l['’]|les?\s)?ex[ée]cuter|\bn['’]ex[ée]cute|\bsin\sejecutar|\bno\s(?:lo\s|la\s)?ejecut[ae]"
    r"|\bsenza\seseguir|\bnon\s(?:lo\s)?eseguir)"
    # code
    rf"|{_ASKS}{_THE}{_PLAIN_KINDS}(?:code|script|snippet|quellcode|quelltext|skript|c[oó]digo|codice){_GOES_ON}"
    rf"|{_ASKS}{_ONE}{_PLAIN_KINDS}(?:function|class|program|script|snippet|method|query|funktion|klasse|programm|skript"
    r"|fonction|classe|programme|funci[oó]n|clase|programa|funzione|programma)\b(?!\s(?:value|label|column|name|of)\b)"
    r"|\bcode\s(?:that\s)?(?:you|did\syou|have\syou)\b|\b(?:function|program|script|class)\s(?:that\s)?you\s|\b(?:code|skript)\s(?:schreiben|zeigen|schicken|geben)\b"
    r"|\bcode\slooks?\slike|\bcode\sof\syour\b|\A\s{0,9}code\s(?:only|bitte|please)"
    rf"|{_ASKS}your\s{_PLAIN_KINDS}(?:function|program|class){_GOES_ON}",
    re.I,
)
"""Wants to see code, or that it is not run; `the sales code`, `the country code of each` are data."""
_COURTESY = re.compile(
    r"\b(?:anything else|would you like|do you want|shall i|should i also|can i help|möchten sie|soll ich noch)\b", re.I
)
_PROMISE = re.compile(
    r"\b(?:(?:i['’]ll|i will)(?! be (?:happy|glad))|let me(?! know)|i(?:['’]m| am) going to|next,? i|ich werde|je vais"
    r"|voy a|ich (?:berechne|lade|lese))\b"
    r"|\b(?:computing|calculating|loading|reading|analy[sz]ing)\b[^.!?\n]{0,80}(?:\.\.\.|…|\bnow\b|\bwait\b)|我将|我会",
    re.I,
)
_WORK = re.compile(
    r"\b(?:comput|calculat|load|read|open|analy[sz]|look|check|run|execut|plot|draw|start|begin|fetch|count|examin|inspect"
    r"|process|train|berechn|lad|les|prüf|calcul|charg|lire|lis|carg|analiz)\w{0,4}\b|计算|加载|读取|分析|查看",
    re.I,
)
_DEPENDS = re.compile(
    r"\b(?:if|once|when(?:ever)?|as soon as|until|from now on|always|upload|provide|send|give|tell|share"
    r"|wenn|sobald|ab jetzt)\b",
    re.I,
)
_PROMISE_CHARS = 300
_PARTS = re.compile(r"(?:(?<!\.)\.|[!?:])(?=\s|\Z)|[\n。！]")
_QUESTION_MARKS = str.maketrans("？؟", "??")
_CHOICES = re.compile(r"\W{0,9}\([^()\d]{1,200}\)\W{0,9}|\s{0,9}(?:\n[ \t]{0,9}[-*•][ \t][^\n\d:]{1,80}){1,20}")
_ENDS_OF_SENTENCES = re.compile(r"[.!?\n]")
_DOTS = " \t\r\n.…"
_WORDS_BESIDE = 200


def match_name(said: str, known: Sequence[str]) -> str:
    """Return the one known name that is meant; empty if none is, or more than one may be.

    Case, blanks, underscores, a leading "the" and words around a long name do not count; then come the words that loose
    models use for the User and for the CodeInterpreter.

    Args:
        said: What the model wrote.
        known: All names.

    Example:
        >>> match_name("code_interpreter", ["CodeInterpreter", "User"]), match_name("the human", ["Coder", "User"])
        ('CodeInterpreter', 'User')
    """
    if said in known:
        return said
    flat = folded(said)
    same = [name for name in known if flat and flat in (folded(name), folded(f"the {name}"))]
    if same:
        return same[0] if len(same) == 1 else ""
    plain = flat.removeprefix("the")
    meant = [name for name, words in _ALIASES.items() if name in known and plain in words]
    others = [name for name in known if name not in meant and (plain in folded(name) or folded(name) in plain)]
    held = [name for name in known if len(folded(name)) >= _LONG_NAME and folded(name) in plain]
    if len(held) == 1 and others in ([], held):
        return held[0]
    return meant[0] if len(meant) == 1 and not others else ""


def folded(text: str) -> str:
    """Return a name without case, blanks and signs."""
    return re.sub(r"[\W_]+", "", text.casefold())


def called(said: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a reply that was sent as a call, `{"name": …, "arguments": {…}}`; others as they are.

    The name of the call is the receiver where it is known, and the arguments name none and are more than code.

    Args:
        said: The object.
        known: The names that may be written to.

    Example:
        >>> called({"name": "coder", "parameters": {"message": "add"}}, ["CodeInterpreter", "User"])
        {'message': 'add', 'send_to': 'CodeInterpreter'}
    """
    names = {key.casefold() for key in said}
    if not names <= _CALLED:
        return dict(said)
    for key, value in said.items():
        inner = _as_object(value) if key.casefold() in _ARGUMENTS else None
        if inner is None:
            continue
        if {one.casefold() for one in inner} <= _CALLED and isinstance(inner.get("name"), str):
            return called(inner, known)
        name = match_name(str(said.get("name") or ""), known)
        fields = set(map(folded, inner))
        return {**inner, "send_to": name} if name and not fields & _RECEIVER and fields - _CODE else inner
    return dict(said)


def _as_object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = read_object(value)
        except Unreadable:
            return None
    return value if isinstance(value, dict) else None


def code_alone(text: str, request: str, *, worked: bool) -> tuple[str, str] | None:
    """Return words and code of a reply that is code for a worker; None if it isn't.

    Code without any mark is none, nor is code for a request that wants to be shown code. After a worker has answered
    only few words may stand beside it: an answer may quote code.

    Args:
        text: The reply, which holds no object.
        request: The User's words.
        worked: A worker has answered in this round.
    """
    if not _MARKED.search(text) or wants_code_shown(request):
        return None
    try:
        read = read_code(text)
    except Unreadable:
        return None
    if not read.code or (worked and len(read.thought) > _WORDS_BESIDE):
        return None
    return read.thought, read.code


def wants_code_shown(request: str) -> bool:
    """Return True if a request asks for code to be shown, or not to be run."""
    return _SHOWN.search(request) is not None


def is_question(message: str) -> bool:
    """Return True if a message to the User ends in a question that is more than a courtesy.

    What one may choose from can follow it: in brackets, or as a list.
    """
    before, mark, rest = message.rstrip()[-400:].translate(_QUESTION_MARKS).rpartition("?")
    asked = bool(mark) and (not any(map(str.isalnum, rest)) or _CHOICES.fullmatch(rest) is not None)
    return asked and not _COURTESY.search(_ENDS_OF_SENTENCES.split(before)[-1])


def is_promise(message: str) -> bool:
    """Return True if a message to the User says what will be done."""
    return _PROMISE.search(message) is not None


def is_promise_alone(message: str) -> bool:
    """Return True if a message ends with a promise to work, and holds no number: nothing has come of it yet.

    A promise that depends on the User is none: `once you have sent the file, I will load it`.

    Args:
        message: To the User, before any worker has answered.
    """
    if len(message) > _PROMISE_CHARS or any(map(str.isdigit, message)) or _DEPENDS.search(message):
        return False
    last = [part for part in _PARTS.split(message) if part.strip()][-1:]
    return any(is_promise(part) and _WORK.search(part) for part in last)


def is_dots(value: str) -> bool:
    """Return True if a field holds nothing but what the form shows in its place: dots, and the number of a step."""
    rest = value.strip(_DOTS)
    return not rest or (len(rest) < 5 and rest != value.strip() and rest.removesuffix(")").isdecimal())
