"""Texts of plain dictionaries that somebody else may have written: a journal's, a saved state's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_field(plain: Mapping[str, Any], key: str, *, needed: bool = False) -> str:
    """Return a text of a dictionary; empty if it is null, or missing.

    Args:
        plain: Values as JSON has them.
        key: The text's.
        needed: It may be null, but not missing.

    Raises:
        KeyError: it is needed, and missing.
        ValueError: it is no text.

    Example:
        >>> text_field({"id": "a"}, "id"), text_field({"id": None}, "id")
        ('a', '')
    """
    value = (plain[key] if needed else plain.get(key)) or ""
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected text, got {type(value).__name__}")
    return value
