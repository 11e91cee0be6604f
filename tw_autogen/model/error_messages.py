"""Error messages for failed calls: where, what, and what to do; never with the key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tw_autogen.errors import REFUSED, ModelError, PromptTooLong, nearest
from tw_autogen.model.http_client import LONGEST_WAIT_SECONDS, ServerRefusal, is_out_of_quota, is_request_too_large
from tw_autogen.model.openai_response import AnswerError
from tw_autogen.secret_masking import MIN_CHARS
from tw_autogen.text_truncation import shortened

EMBEDDING = "embedding"
"""The section of settings of models for embeddings."""
_LIMIT_CHARS = 400
_MAX_NAMES = 20
_TOO_LONG = re.compile(
    r"context.?(length|window|size|limit)|maximum (context|prompt length)|too many (input )?tokens|reduce the length"
    r"|(prompt|input|request) is too (long|large)|token count .{0,40}exceed"
    # vLLM, TensorRT-LLM, SambaNova, TabbyAPI; TGI; DashScope; Moonshot; Zhipu
    r"|max(imum)? (model|input|sequence|supported sequence) length|max_(seq|model|input)_len"
    r"|must have less than \d{1,9} tokens|tokens.? \+ .max_new_tokens. must be|range of input length"
    r"|exceeded model token limit|model max length exceeded|more than max tokens",
    re.I,
)
_BUSY = re.compile(r"please wait|rate.?limit|throttl|[( ]429\b(?! tokens)", re.I)
_WRONG_KEY = re.compile(r"API key not valid|API_KEY_INVALID")
"""Google says so with status 400."""
_NO_PLACE = re.compile(r"\b(country|region|territory)\b", re.I)
_NO_MODEL = re.compile(
    r"model\b.{0,80}(not.{0,4}(found|exist|available)|is (unknown|invalid))|(no such|unknown|invalid) model", re.I
)


def shown_url(url: str) -> str:
    """Return the address without the parts that may be secret: user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")).rstrip("/")


def server_words(error: Any, key: str) -> str:
    """Return the server's explanation of a refusal: one line without a stop at its end, at most 400 characters.

    Args:
        error: What the client raised.
        key: Replaced by `***`; one of less than 8 characters (`x` for a local server) stays, as it stands in words.
    """
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        message = body.get("message") or json.dumps(body, ensure_ascii=False)
    else:
        message = body or str(error)
    line = " ".join(str(message).split())
    line = (line.replace(key, "***") if len(key) >= MIN_CHARS else line).rstrip(".")
    return shortened(line, _LIMIT_CHARS)


def is_too_long(error: ModelError) -> bool:
    """Return True if an error says that the prompt is longer than the model's context, also in a host's words."""
    return isinstance(error, PromptTooLong) or _says_too_long(str(error))


def is_length_refusal(refused: ServerRefusal) -> bool:
    """Return True if a refusal means that this very prompt is too long, and not that the server is busy."""
    if refused.code == "context_length_exceeded" or refused.status_code == 413:
        return True
    return _says_too_long(f"({refused.status_code}) {server_words(refused, '')}")


def _says_too_long(message: str) -> bool:
    return is_request_too_large(message) or (_TOO_LONG.search(message) is not None and _BUSY.search(message) is None)


def describe_failure(
    error: Exception,
    *,
    url: str,
    name: str,
    key: str,
    models: Callable[[], tuple[str, ...]],
    max_tries: int,
    section: str = "model",
) -> ModelError:
    """Return the error that explains the client's exception to whoever configured the model.

    Args:
        error: What the client, or the HTTP library below it, raised.
        url: The server's address as it may be shown.
        name: The model that was asked.
        key: Taken out of every word that the server said; empty if there is none.
        models: Asks the server for the names that it has; may itself raise `ModelError`.
        max_tries: How often the call would have been sent at most.
        section: The section of its settings, such as `model` in `model.name`.

    Returns:
        An error without the original as its cause, since that one holds the request's headers.
    """
    refusal = error if isinstance(error, ServerRefusal) else None
    status, tries, code = (refusal.status_code, refusal.tries, refusal.code) if refusal else (None, max_tries, "")
    message, kind = server_words(error, key), ModelError
    if status is None:
        said = _no_answer(error, message, tries, section)
    elif section == EMBEDDING and status in (400, 413, 422) and not _names_no_model(code, message):
        said = (
            f"the embedding server refused the texts ({status}): {message}. Check that {name!r} (`{section}.name`) is "
        )
        said += f"a model for embeddings there (`{section}.base_url`), and takes texts of their length"
    elif refusal and is_length_refusal(refusal):
        kind = PromptTooLong
        said = f"the prompt is too long for {name!r} ({status}): {message}. Set `recall.compress_tokens` below the "
        said += f"model's context, ask for less at once, or choose a model with a longer context (`{section}.name`)"
    elif (status in (401, 403) and not _NO_PLACE.search(message)) or (status == 400 and _WRONG_KEY.search(message)):
        said = f"the key was refused ({status}): {message}. Check `{section}.api_key` (OPENAI_API_KEY)"
        if not key:
            said = f"a key is wanted there ({status}): {message}. Set `{section}.api_key` (OPENAI_API_KEY)"
    elif status == 404 or (status in (400, 422) and _names_no_model(code, message)):
        said = _not_found(status, message, name, models, section)
    elif status == 429 and refusal and is_out_of_quota(json.dumps(refusal.body)):
        said = (
            f"no credit is left, or a limit of the account is reached (429): {message}. Add credit, or use another key"
        )
    elif status == 429:
        said = f"still too busy (429), after {_times(tries)}: {message}. Wait, or raise `{section}.max_tries`"
        if refusal and (pause := refusal.asked_for or 0.0) > LONGEST_WAIT_SECONDS:
            said = f"too busy (429): {message}. It wants to be asked again in {pause:.0f} s, and not before"
    elif status >= 500:
        said = f"the server failed ({status}) {_times(tries)}: {message}. See its log, or try again later"
    else:
        said = f"{REFUSED} ({status}): {message}"
    return kind(f"{url}: {said}", tries=tries)


def _names_no_model(code: str, message: str) -> bool:
    return code == "model_not_found" or _NO_MODEL.search(message) is not None


def _no_answer(error: Exception, message: str, tries: int, section: str) -> str:
    """Return the words for a failure without a status: no connection, or an error in the place of an answer."""
    if isinstance(error, AnswerError):
        return f"the server answered with an error: {message}"
    return (
        f"no connection, or a broken one, {_times(tries)}: {message}. Is the server running, and is "
        f"`{section}.base_url` (OPENAI_BASE_URL) right?"
    )


def _not_found(status: int, message: str, name: str, models: Callable[[], tuple[str, ...]], section: str) -> str:
    try:
        names = models()
    except ModelError:
        return f"not found ({status}): {message}. A `{section}.base_url` usually ends in /v1"
    if name in names:
        return f"not found ({status}): {message}"
    listed = ", ".join(names[:_MAX_NAMES]) + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
    hint = nearest(name, names)
    return f"no model {name!r} there{hint if 'mean' in hint else ''}; it has: {listed or 'none'}. Set `{section}.name`"


def _times(tries: int) -> str:
    return "once" if tries == 1 else f"{tries} times"
