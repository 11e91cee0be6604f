"""`check_zone` and `parse_zone`: which names of time zones cross between a kernel and its host."""

from __future__ import annotations

import re
import zoneinfo

from .bounds import shown

_OFFSET = re.compile(r"(UTC)?[+-]\d\d(:?\d\d(:?\d\d)?)?|Z|utc")
_ZONE = re.compile(r"(?!dateutil)[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")


def check_zone(name: object) -> str:
    """Return the name of a time zone that crosses: one of the IANA database, or an offset.

    Args:
        name: Sent by the other side, so it may be anything; pandas would open files by other names.

    Raises:
        ValueError: it is no name of the IANA database, and no offset.
    """
    if isinstance(name, str) and _OFFSET.fullmatch(name):
        return name
    return parse_zone(name).key


def parse_zone(name: object) -> zoneinfo.ZoneInfo:
    """Return the time zone of the IANA database that has a name.

    Args:
        name: Sent by the other side, so it may be anything.

    Raises:
        ValueError: it is no name of the IANA database.
    """
    if isinstance(name, str) and _ZONE.fullmatch(name):
        try:
            return zoneinfo.ZoneInfo(name)
        except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
            pass
    raise ValueError(f"no time zone that crosses: {shown(name)}; use an IANA name, or an offset such as UTC+02:00")
