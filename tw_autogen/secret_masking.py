"""What secrets look like, by their names and by their form; and how they are masked in what is written down."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tw_autogen.file_suffixes import DATA, DOCUMENTS, PICTURES

_SECRET_WORD = r"(?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|CREDENTIAL)S?"
_SECRET_VARIABLE = re.compile(
    rf"{_SECRET_WORD}(?:_?\d{{1,3}}|_(?:BASE|VALUE|PROD|PRODUCTION|STAGING|STAGE|DEV|TEST|LIVE|OLD|NEW|MAIN|BACKUP|RO|RW))?$",
    re.IGNORECASE,
)
"""The end of the names of environment variables that hold secrets; of `KEYSPACE` it is only the beginning."""
_ABOUT_SECRET = re.compile(rf"(?:^|_){_SECRET_WORD}_", re.IGNORECASE)
"""In names of variables that hold secrets, or what is known of them: `TOKEN_GITHUB`, `TOKEN_AUDIENCE`."""
_NO_SECRET = re.compile(
    r"(?:^|_)(?:(?:SORT|PARTITION|PRIMARY|FOREIGN|PUBLIC|JOIN|ROW|HASH|RANGE|INDEX|GROUP|CACHE)_KEY"
    r"|(?:MAX|MIN|NUM|N|TOTAL)_TOKEN)S?$",
    re.IGNORECASE,
)
MIN_CHARS = 8
"""Shorter values stand in ordinary words."""

SECRET_FORMS = (
    re.compile(r"\bsk-[A-Za-z0-9_-]{12,}"),
    re.compile(r"(?P<before>\bBearer )[A-Za-z0-9._~+/=-]{12,}"),
    re.compile(
        r"(?P<before>\bauthorization[\"'\\]{0,3}[ \t]?[:=][ \t]?[\"'\\]{0,3}(?:basic|bearer) )[A-Za-z0-9._~+/=-]{8,}",
        re.I,
    ),
    re.compile(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|A[KS]IA[0-9A-Z]{16}\b|gsk_[A-Za-z0-9]{20,}"
        r"|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}"
        r"|SG\.[\w-]{16,}\.[\w-]{16,}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|eyJ[\w-]{8,}\.eyJ[\w-]{4,}\.[\w-]{4,})"
    ),
    re.compile(r"(?P<before>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)[A-Za-z0-9+/=\s\\]{20,}"),
    re.compile(r"(?P<before>\blogin[ \t]+\S{1,100}[ \t]+password[ \t]+)\S+"),
    re.compile(r"(?P<before>://[^/\s:@\"\\]*:)[^@/\s\"\\]+(?P<after>@)"),
)
"""Keys and passwords that show by their form; what stands before and after is no part of the secret."""

_SETTING = re.compile(
    r"(^|[_-])((api|access|account|auth|private|secret|subscription|signing|encryption)[_-]?key|token|secret"
    r"|(pg)?passw(or)?d|passphrase|credentials?)$|[_-]pwd$|^key$",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(^|[_-])(max|min|num|n|total)[_-]?token$", re.IGNORECASE)
_PASSWORD = re.compile(r"passw|passphrase|pwd", re.IGNORECASE)
_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMED = re.compile(
    r"""(?<![\w.-])["']?(?P<name>[\w.-]{1,100})["']?[ \t]{0,8}[:=][ \t]{0,8}\[?"""
    r"""(?:"(?P<double>[^"\\\n]*(?:\\.[^"\\\n]*){0,50})"|'(?P<single>[^'\\\n]*(?:\\.[^'\\\n]*){0,50})'"""
    r"""|["']?(?P<value>[^\s"',;{}\[\]]{4,}))"""
    r"""|<(?P<element>[\w.-]{1,100})>(?P<text>[^<>\n]{4,})(?=</)"""
)
_NO_VALUE = frozenset({"true", "false", "none", "null", "required", "optional", "string"})
_OF_PROGRAMS = {".json", ".xml", ".db", ".sqlite", ".sqlite3", ".zip", ".tar", ".tgz", ".txt"}
_TABLES_AND_TEXTS = tuple((DATA | DOCUMENTS | PICTURES) - _OF_PROGRAMS)
"""Most of these that have such a word in their names are about it, as `password_survey.csv` and `tokens.csv` are."""
_SECRET_TABLE = re.compile(
    r"(?:^|_)(?:passwords?|passwd|credentials?|secrets?|(?:private|secret|access|root|api)_?keys?)"
    r"(?:_?\d{1,4}|_backup|_old|_new|_copy|_export|_prod|_dev)?$",
    re.IGNORECASE,
)
"""What their names end with if they hold secrets; words are separated by `_`."""
_KEY_FILES = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".gpg", ".ovpn")
_FILE = re.compile(
    r"id_(rsa|dsa|ecdsa|ed25519)|ssh_host_|g?shadow-?$|kubeconfig|wallet\.dat|oai_config_list"
    r"|([^.]*[-_.])?(secrets?|passwords?|passwd|credentials?|private[-_]?keys?|api[-_]?keys?|tokens?)([-_.]|$)"
    r"(?!counts?\b)",
    re.IGNORECASE,
)
"""What files of keys are called; `kernel.guest.files.folder_listing`, which stands alone, has the same and more."""
_PATH_VARIABLE = re.compile(r"_(?:DIR|PATH|FILE|FOLDER)$", re.IGNORECASE)
_BEGIN_OF_WORD = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))"
"""Also after an escape such as `\\n`."""
MASK = "[secret]"
"""What stands for a secret."""
_MIN_NAMED_CHARS = 4
_COUNT = re.compile(r"\d{1,20} \w{1,20}(?:: |, |$)")
"""How many items or characters a value has."""
_PLACEHOLDER = re.compile(
    r"\s|^\$|\$[a-z_({]|^<.*>$|^(your|place|insert|enter|change|example|x{3}|\*{3}|\.{3})", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Return whether a setting of this name, or a file without its suffix, holds a secret by its name.

    Example:
        >>> is_secret_name("api_key"), is_secret_name("credentials"), is_secret_name("max_tokens")
        (True, True, False)
    """
    return _SETTING.search(_NEW_WORD.sub("_", name)) is not None


def is_secret_file(name: str) -> bool:
    """Return whether a file's name says that it holds secrets.

    Args:
        name: The last component of its path.

    Example:
        >>> is_secret_file("passwords.csv"), is_secret_file("tokens.json"), is_secret_file("id_rsa")
        (True, True, True)
        >>> is_secret_file("prices.csv"), is_secret_file("tokens.csv"), is_secret_file("password_survey.csv")
        (False, False, False)
    """
    low = name.lower().removesuffix(".gz")
    if low.endswith(_TABLES_AND_TEXTS) and not name.startswith("."):
        words = _NEW_WORD.sub("_", name[: low.rindex(".")])
        return _SECRET_TABLE.search(re.sub(r"[\W_]+", "_", words).strip("_")) is not None
    stem = name.partition(".")[0].removesuffix("s")
    return is_secret_name(stem) or name.lower().endswith(_KEY_FILES) or _FILE.match(name) is not None


def is_secret(name: str, value: object) -> bool:
    """Return whether a setting seems to hold a secret, and not the place for one.

    Args:
        name: The setting's name.
        value: Its value.

    Example:
        >>> is_secret("api_key", "a1b2c3d4e5f6"), is_secret("api_key", "$SHOP_KEY"), is_secret("max_tokens", "10000000")
        (True, False, False)
    """
    if not isinstance(value, str) or len(value) < MIN_CHARS or _PLACEHOLDER.search(value):
        return False
    return is_secret_name(name) or any(form.search(value) for form in SECRET_FORMS)


def mask_named(text: str) -> str:
    """Return a text in which the values of settings that are named like secrets, or look like them, are masked.

    Args:
        text: Such as the first lines of a settings file, in JSON, YAML, TOML, XML or `NAME=value`.

    Example:
        >>> mask_named('{"DB_PASSWORD": "hunter2hunter2", "rows": "10000000", "url": "db://me:pw@host"}')
        '{"DB_PASSWORD": "[secret]", "rows": "10000000", "url": "db://me:[secret]@host"}'
    """
    text = _NAMED.sub(_masked_value, text)
    for form in SECRET_FORMS:
        text = form.sub(_mask_match, text)
    return text


def mask_value(name: str, value: Any) -> Any:
    """Return a value of a variable in which secrets are masked, known by the names and forms of `mask_named`.

    Args:
        name: The variable's name; of what is in a dict, its key counts too.
        value: Any; of lists, tuples, sets and dicts the items are masked.

    Example:
        >>> mask_value("shop", {"api_token": "a1b2c3d4e5", "rows": 3}), mask_value("db", "db://me:pw@host")
        ({'api_token': '[secret]', 'rows': 3}, 'db://me:[secret]@host')
    """
    kind = type(value)
    if kind is dict:
        inherited = is_secret_name(name)
        return {key: mask_value(name if inherited else str(key), item) for key, item in value.items()}
    if kind in (list, tuple, set, frozenset):
        return kind(mask_value(name, item) for item in value)
    if kind is bool or not isinstance(value, (str, bytes, bytearray, int)):
        return value
    text = value.decode("latin-1") if isinstance(value, (bytes, bytearray)) else str(value)
    if _is_named_secret(name, text):
        return MASK
    return mask_named(text) if kind is str else value


def mask_summary(name: str, summary: str) -> str:
    """Return the text that a kernel says of a variable's value, with secrets masked as in `mask_value`.

    Args:
        name: The variable's.
        summary: The text.

    Example:
        >>> mask_summary("api_token", "'a1b2c3d4e5'"), mask_summary("shop", "1 key: {'password': 'hunter2'}")
        ('[secret]', "1 key: {'password': '[secret]'}")
    """
    count = _COUNT.match(summary)
    before, value = (count[0], summary[count.end() :]) if count else ("", summary)
    if is_secret_name(name) and value[:1] in ("{", "[", "("):
        return before + MASK
    return before + (MASK if _is_named_secret(name, value.strip("'\"")) else mask_named(value))


def redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that masks secrets in a line of JSON, or in other text.

    Args:
        environ: The values of its variables that are named like secrets (`…_API_KEY`, `…_TOKEN`, `…PASSWORD…`) are
            masked wherever they turn up; keys and passwords in addresses are known by their form as well. What only
            begins like one (`KEYSPACE`) is none, and of `TOKEN_AUDIENCE` only a value of letters and digits may be.

    Example:
        >>> redactor({"SHOP_TOKEN": "a1b2c3d4e5"})('{"error": "a1b2c3d4e5 was refused by db://me:pw@host"}')
        '{"error": "[secret] was refused by db://me:[secret]@host"}'
    """
    values = {value.strip() for name, value in environ.items() if _is_known_secret(name, value.strip())}
    pattern = _pattern_of_values(one for one in values if not one.isdigit())
    numbers = _pattern_of_values(filter(str.isdigit, values))
    in_json = re.compile(rf'\\.|"|{numbers.pattern}') if numbers else None

    def redact(line: str) -> str:
        if pattern is not None:
            line = pattern.sub(MASK, line)
        if in_json is not None and line.startswith("{"):
            line = in_json.sub(_masked_in_strings(), line)
        elif numbers is not None:
            line = numbers.sub(MASK, line)
        for form in SECRET_FORMS:
            line = form.sub(_mask_match, line)
        return line

    return redact


def _masked_in_strings() -> Callable[[re.Match[str]], str]:
    """Return what masks numbers in the strings of a line of JSON: outside of them a mask is no JSON."""
    inside = False

    def mask(match: re.Match[str]) -> str:
        nonlocal inside
        if match[0] == '"':
            inside = not inside
        return MASK if inside and match[0].isdigit() else match[0]

    return mask


def _is_known_secret(name: str, value: str) -> bool:
    """Return whether the value of an environment variable is a secret, and not the path of one or a word about one."""
    is_path = _PATH_VARIABLE.search(name) is not None or (value.startswith("/") and os.path.lexists(value))
    if is_path or len(value) < MIN_CHARS or _NO_SECRET.search(name):
        return False
    if is_secret_name(name) or _SECRET_VARIABLE.search(name):
        return True
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and "://" not in value
    return mixed and _ABOUT_SECRET.search(name) is not None


def _pattern_of_values(values: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds values in a line of JSON; those of letters or digits alone as words of their own."""
    spelled: dict[str, str] = {}
    for value in values:
        once = json.dumps(value, ensure_ascii=False)[1:-1]
        for text in (json.dumps(once, ensure_ascii=False)[1:-1], once):  # JSON in a string of JSON
            word = value.isalpha() or value.isdigit()
            spelled[text] = rf"{_BEGIN_OF_WORD}{re.escape(text)}(?![A-Za-z0-9])" if word else re.escape(text)
    longest_first = sorted(spelled, key=len, reverse=True)
    return re.compile("|".join(spelled[one] for one in longest_first)) if longest_first else None


def _masked_value(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    value, (start, end) = match[kind], match.span(kind)
    masked = MASK if _is_named_secret(match["name"] or match["element"], value) else ""
    if not masked:  # in quotes there may be settings, too
        masked = _NAMED.sub(_masked_value, value) if kind in ("double", "single") else value
    return f"{match.string[match.start() : start]}{masked}{match.string[end : match.end()]}"


def _is_named_secret(name: str, value: str) -> bool:
    """Return whether a value is a secret by its name; a password may be short and have blanks."""
    if len(value) < _MIN_NAMED_CHARS or not is_secret_name(name) or _COUNTED.search(name):
        return False
    if value.lower() in _NO_VALUE or value[0] == "<":
        return False
    if name.lower() == "key" and value.replace("_", "").isalpha():
        return False
    return is_secret(name, f"{value.replace(' ', '_'):_<{MIN_CHARS}}" if _PASSWORD.search(name) else value)


def _mask_match(match: re.Match[str]) -> str:
    around = match.groupdict()
    return f"{around.get('before', '')}{MASK}{around.get('after', '')}"


def redacted_json(text: str, redact: Callable[[str], str]) -> str:
    """Return JSON without secrets: what looks like one may take quotes and escapes with it, which must not.

    Args:
        text: JSON.
        redact: Masks secrets in a text, see `redactor`.
    """
    redacted = redact(text)
    if redacted == text:
        return text
    read = json.loads(text)
    with contextlib.suppress(ValueError):
        if _differs_in_texts_only(json.loads(redacted), read):
            return redacted
    return json.dumps(_with_texts(read, redact), ensure_ascii=False)


def _differs_in_texts_only(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(map(_differs_in_texts_only, one.values(), other.values()))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_differs_in_texts_only, one, other))
    return one == other or (isinstance(one, str) and isinstance(other, str))


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {change(key): _with_texts(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one, change) for one in value]
    return change(value) if isinstance(value, str) else value
