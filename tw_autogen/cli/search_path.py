"""`leave_out_current_folder`: no module comes from wherever the program is started, whatever PYTHONPATH says."""

from __future__ import annotations

import os
import sys


def leave_out_current_folder(package: str) -> None:
    """Take the current folder out of `sys.path` if an empty part of PYTHONPATH put it there, and say so.

    `PYTHONPATH=$PYTHONPATH:/my/lib` has an empty part where the variable was not set before, which Python takes for the
    current folder: anybody's, where one works in what somebody else made.

    Args:
        package: The file of the package `cli`; where it was imported from the current folder, nothing is taken out.
    """
    said = os.environ.get("PYTHONPATH", "")
    here = os.path.realpath(os.curdir)
    relative = [one for one in said.split(os.pathsep) if not os.path.isabs(one)] if said else []
    if not any(os.path.realpath(one or os.curdir) == here for one in relative):
        return
    if os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(package)))) == here:
        return
    sys.path[:] = [one for one in sys.path if os.path.realpath(one) != here]
    sys.stderr.write(
        f"tw-autogen: PYTHONPATH is {said!r}, of which a part means the current folder: Python itself has looked for "
        "modules here; this program doesn't. Take the empty part out\n"
    )
