"""Keeps secrets out of what is written down: keys and passwords that came along in errors, code or output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from tw_autogen.secret import LEAST_CHARS, SECRET_FORMS, SECRET_VARIABLE

_MASK = "[secret]"


def redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Give a function that masks secrets in a line of JSON.

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


def _masked(found: re.Match[str]) -> str:
    around = found.groupdict()
    return f"{around.get('before', '')}{_MASK}{around.get('after', '')}"
