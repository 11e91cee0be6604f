"""Names of time zones that cross: those of the IANA database, and offsets; pandas would open files by other ones."""

from __future__ import annotations

import re
import zoneinfo

_OFFSET = re.compile(r"UTC[+-]\d\d:\d\d(:\d\d)?")
_KEY = re.compile(r"(?!dateutil)[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")
_LABEL = re.compile(r"[a-z]+\d{0,3}(\[(s|ms|us|ns|python|pyarrow)\])?", re.IGNORECASE)
_ZONED_LABEL = re.compile(r"datetime64\[(?:s|ms|us|ns), (.+)\]")


def check_zone(name: object) -> str:
    """Return the name of a time zone, if it is one.

    Args:
        name: What came from the other side, so it may be anything.

    Raises:
        ValueError: it is no name of the IANA database, and no offset.
    """
    if isinstance(name, str):
        if _OFFSET.fullmatch(name):
            return name
        if _KEY.fullmatch(name):
            try:
                zoneinfo.ZoneInfo(name)
            except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
                pass
            else:
                return name
    raise ValueError(f"no time zone that crosses: {name!r:.80}; use an IANA name, or an offset such as UTC+02:00")


def check_dtype(name: object) -> str:
    """Return the dtype of column labels, if it is a plain one.

    Args:
        name: What came from the other side, so it may be anything.

    Raises:
        ValueError: it is none that crosses.
    """
    if isinstance(name, str):
        if zoned := _ZONED_LABEL.fullmatch(name):
            check_zone(zoned[1])
            return name
        if _LABEL.fullmatch(name):
            return name
    raise ValueError(f"no dtype of labels that crosses: {name!r:.80}")
