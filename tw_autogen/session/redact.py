"""Keeps secrets out of what is written down: keys and passwords that came along in errors, code or output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_LEAST_CHARS = 8  # shorter values stand in ordinary words
_MASK = "[secret]"
_FORMS = (
    (re.compile(r"\bsk-[A-Za-z0-9_-]{12,}"), _MASK),
    (re.compile(r"(\bBearer )[A-Za-z0-9._~+/=-]{12,}"), rf"\1{_MASK}"),
    (re.compile(r"(://[^/\s:@\"\\]+:)[^@/\s\"\\]+@"), rf"\1{_MASK}@"),
)


def redactor(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Give a function that masks secrets in a line of JSON.

    Args:
        environ: The values of its variables that are named like secrets (`…_API_KEY`, `…_TOKEN`, `…PASSWORD…`) are
            masked wherever they turn up; keys and passwords in addresses are known by their form as well.

    Example:
        >>> redactor({"SHOP_TOKEN": "a1b2c3d4e5"})('{"error": "a1b2c3d4e5 was refused by db://me:pw@host"}')
        '{"error": "[secret] was refused by db://me:[secret]@host"}'
    """
    values = {value for name, value in environ.items() if _SECRET_NAME.search(name) and len(value) >= _LEAST_CHARS}
    spelled = sorted({json.dumps(value, ensure_ascii=False)[1:-1] for value in values}, key=len, reverse=True)
    known = re.compile("|".join(map(re.escape, spelled))) if spelled else None

    def redact(line: str) -> str:
        if known is not None:
            line = known.sub(_MASK, line)
        for form, mask in _FORMS:
            line = form.sub(mask, line)
        return line

    return redact
