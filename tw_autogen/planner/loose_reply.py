"""Forms in which loose models send the Planner's reply: as a call of a tool, or as code alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tw_autogen.errors import Unreadable
from tw_autogen.model import read_code, read_object

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
    r"^[ \t]*(?:```|~~~)[ \t]*(?:python|py)\b|<\|python_tag\|>"
    r"|^[ \t]*<(?:tool_call|function_call|code|python|execute)\b",
    re.I | re.M,
)
_SHOWN = re.compile(
    r"\b(?:don['’]?t|do not|without|never|not|nicht|ohne)\b[^.?!\n]{0,30}\b(?:run|running|execut\w{1,9}|ausf\w{1,9})\b"
    r"|\b(?:write|show|give|send|need|want|schreib\w{0,4}|zeig\w{0,4})\b[^.?!\n]{0,40}"
    r"\b(?:code|function|script|snippet|program|class|funktion|skript|programm)\b",
    re.I,
)
_COURTESY = re.compile(
    r"\b(?:anything else|would you like|do you want|shall i|should i also|can i help|möchten sie|soll ich noch)\b", re.I
)
_PROMISE = re.compile(r"\b(?:i['’]ll|i will|let me|i am going to|i['’]m going to|next,? i|ich werde)\b", re.I)
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
        inner = _object(value) if key.casefold() in _ARGUMENTS else None
        if inner is None:
            continue
        if {one.casefold() for one in inner} <= _CALLED and isinstance(inner.get("name"), str):
            return called(inner, known)
        name = match_name(str(said.get("name") or ""), known)
        fields = set(map(folded, inner))
        return {**inner, "send_to": name} if name and not fields & _RECEIVER and fields - _CODE else inner
    return dict(said)


def _object(value: Any) -> dict[str, Any] | None:
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
    """Return True if a message to the User ends in a question that is more than a courtesy."""
    before, mark, rest = message.rstrip()[-400:].rpartition("?")
    asked = bool(mark) and not any(one.isalnum() for one in rest)
    return asked and not _COURTESY.search(_ENDS_OF_SENTENCES.split(before)[-1])


def is_promise(message: str) -> bool:
    """Return True if a message to the User says what will be done."""
    return _PROMISE.search(message) is not None


def is_dots(value: str) -> bool:
    """Return True if a field holds nothing but what the form shows in its place: dots, and the number of a step."""
    rest = value.strip(_DOTS)
    return not rest or (len(rest) < 5 and rest != value.strip() and rest.removesuffix(")").isdecimal())
