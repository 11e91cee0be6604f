"""`EventLines`: the events of a session as lines of JSON, as `--output-format stream-json` writes them."""

from __future__ import annotations

import json
import os
import threading
from datetime import datetime, timezone
from typing import TextIO

from tw_autogen.events import Event
from tw_autogen.secret_masking import redactor

SCHEMA_VERSION = 1
"""Of the object of `--output-format json`, and of the lines of `stream-json`; new fields don't change it."""
RESULT = "Result"
"""The last line's `event`: the object of `--output-format json`."""


class EventLines:
    """Writes each event as one line: `schema_version`, `seq`, `at`, `event` and its fields; secrets are masked.

    Args:
        file: Where to.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._redact = redactor(os.environ)
        self._lock = threading.Lock()
        self._seq = 0

    def __call__(self, event: Event) -> None:
        """Write one event."""
        with self._lock:
            line = {
                "schema_version": SCHEMA_VERSION,
                "seq": self._seq,
                "at": datetime.now(timezone.utc).isoformat(),
                **event.to_dict(),
            }
            self._seq += 1
            self._file.write(self._redact(json.dumps(line, ensure_ascii=False, default=str)) + "\n")
            self._file.flush()
