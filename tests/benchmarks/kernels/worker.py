"""The process in which one peer is measured: reads requests as JSON lines, answers each with one line.

Run as `python worker.py <row or nothing>`. What a library prints goes to standard error, so that it is no answer.
"""

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parent / "peers"))


def load(row):
    """Import a row's library; give the requests that can be answered with it."""
    from session import ROWS  # deferred, like all that a request needs: the time of imports is measured here

    where = ROWS[row]
    measured = importlib.import_module("sessions")
    peer = getattr(importlib.import_module(where.module), where.name)
    return measured.requests(peer)


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    began = time.perf_counter()
    known = load(sys.argv[1]) if sys.argv[1] else importlib.import_module("crossing").requests()
    answers.write(json.dumps({"import_seconds": time.perf_counter() - began}) + "\n")
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = known[asked.pop("op")](**asked)
        except Exception as error:  # noqa: BLE001 - a peer may raise anything; it is shown in the table
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
    os._exit(0)  # a peer's thread that hangs must not hold the process
