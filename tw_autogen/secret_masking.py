"""What secrets look like, by their names and by their form; and how they are masked in what is written down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
"""A part of the names of environment variables that hold secrets."""

LEAST_CHARS = 8
"""Shorter values stand in ordinary words."""

SECRET_FORMS = (
    re.compile(r"\bsk-[A-Za-z0-9_-]{12,}"),
    re.compile(r"(?P<before>\bBearer )[A-Za-z0-9._~+/=-]{12,}"),
    re.compile(r"(?P<before>://[^/\s:@\"\\]+:)[^@/\s\"\\]+(?P<after>@)"),
)
"""Keys and passwords that show by their form; what stands before and after is no part of the secret."""

_SETTING = re.compile(
    r"(^|[_-])((api|access|account|auth|private|secret|subscription)[_-]?key|token|secret|passw(or)?d|credentials?)$|^key$",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"""(?P<before>(?<![\w.-])["']?(?P<name>[\w.-]{1,100})["']?[ \t]{0,8}[:=][ \t]{0,8}["']?)"""
    r"""(?P<value>[^\s"',;{}\[\]]{8,})"""
)
_KEY_FILES = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".gpg", ".ovpn")
_FILE = re.compile(
    r"id_(rsa|dsa|ecdsa|ed25519)|ssh_host_|g?shadow-?$|kubeconfig|wallet\.dat|oai_config_list"
    r"|([^.]*[-_.])?(secrets?|passwords?|passwd|credentials?|private[-_]?keys?|api[-_]?keys?|tokens?)([-_.]|$)"
    r"(?!counts?\b)",
    re.IGNORECASE,
)
"""What files of keys are called; `kernel.guest.folder_listing` lists none of these for models, and has more."""
_MASK = "[secret]"
_PLACEHOLDER = re.compile(r"\s|\$|^<.*>$|^(your|place|insert|enter|change|example|x{3}|\*{3}|\.{3})", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return whether a setting of this name, or a file without its suffix, holds a secret by its name.

    Example:
        >>> is_secret_name("api_key"), is_secret_name("credentials"), is_secret_name("max_tokens")
        (True, True, False)
    """
    return _SETTING.search(name) is not None


def is_secret_file(name: str) -> bool:
    """Return whether a file's name says that it holds secrets.

    Args:
        name: The last component of its path.

    Example:
        >>> is_secret_file("passwords.txt"), is_secret_file("id_rsa"), is_secret_file("prices.csv")
        (True, True, False)
    """
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
    if not isinstance(value, str) or len(value) < LEAST_CHARS or _PLACEHOLDER.search(value):
        return False
    return is_secret_name(name) or any(form.search(value) for form in SECRET_FORMS)


def mask_named(text: str) -> str:
    """Return a text in which the values of settings that are named like secrets, or look like them, are masked.

    Args:
        text: Such as the first lines of a settings file, in JSON, YAML, TOML or `NAME=value`.

    Example:
        >>> mask_named('{"DB_PASSWORD": "hunter2hunter2", "rows": "10000000", "url": "db://me:pw@host"}')
        '{"DB_PASSWORD": "[secret]", "rows": "10000000", "url": "db://me:[secret]@host"}'
    """
    text = _NAMED.sub(_masked_value, text)
    for form in SECRET_FORMS:
        text = form.sub(_masked, text)
    return text


def redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that masks secrets in a line of JSON.

    Args:
        environ: The values of its variables that are named like secrets (`…_API_KEY`, `…_TOKEN`, `…PASSWORD…`) are
            masked wherever they turn up; keys and passwords in addresses are known by their form as well.

    Example:
        >>> redactor({"SHOP_TOKEN": "a1b2c3d4e5"})('{"error": "a1b2c3d4e5 was refused by db://me:pw@host"}')
        '{"error": "[secret] was refused by db://me:[secret]@host"}'
    """
    values = {value for name, value in environ.items() if SECRET_VARIABLE.search(name) and len(value) >= LEAST_CHARS}
    spelled = sorted({json.dumps(value, ensure_ascii=False)[1:-1] for value in values}, key=len, reverse=True)
    known = re.compile("|".join(map(re.escape, spelled))) if spelled else None

    def redact(line: str) -> str:
        if known is not None:
            line = known.sub(_MASK, line)
        for form in SECRET_FORMS:
            line = form.sub(_masked, line)
        return line

    return redact


def _masked_value(found: re.Match[str]) -> str:
    hidden = is_secret_name(found["name"]) and is_secret(found["name"], found["value"])
    return f"{found['before']}{_MASK if hidden else found['value']}"


def _masked(found: re.Match[str]) -> str:
    around = found.groupdict()
    return f"{around.get('before', '')}{_MASK}{around.get('after', '')}"
