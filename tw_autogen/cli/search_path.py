"""`leave_out_current_folder`: no module and no program comes from wherever this one is started.

Whatever PYTHONPATH and PATH say.
"""

from __future__ import annotations

import os
import sys

_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


def leave_out_current_folder(package: str) -> None:
    """Take out of `sys.path` what a part of PYTHONPATH that is no whole path put there, and say so.

    Processes that are started from here don't get such parts either, nor those of PATH and of the paths of libraries: a
    pager, a viewer, an editor or a library would come from there. Where the system has taken libraries of this process
    from there, that can only be said. A PYTHONPYCACHEPREFIX or PYTHONUSERBASE that is no whole path counts no more:
    what lies there is taken for what Python has compiled, or what was installed.

    `PYTHONPATH=$PYTHONPATH:/my/lib` has an empty part where the variable was not set before, which Python takes for the
    current folder: anybody's, where one works in what somebody else made. So is `src`.

    Args:
        package: The file of the package `cli`; where that was found is not taken out.
    """
    if (prefix := sys.pycache_prefix) and not os.path.isabs(prefix):
        sys.pycache_prefix = None
        os.environ.pop("PYTHONPYCACHEPREFIX", None)
    user_base = os.environ.get("PYTHONUSERBASE", "")
    if user_base and not os.path.isabs(user_base):
        below = os.path.realpath(user_base) + os.sep
        sys.path[:] = [one for one in sys.path if not os.path.realpath(one).startswith(below)]
        del os.environ["PYTHONUSERBASE"]
    folders = os.environ.get("PYTHONPATH", "")
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(package))))
    relative = [part for part in folders.split(os.pathsep) if not os.path.isabs(part)] if folders else []
    places = {os.path.realpath(one or os.curdir) for one in relative}
    for name in _LIBRARIES:
        if (value := os.environ.get(name)) and not all(map(os.path.isabs, value.split(os.pathsep))):
            sys.stderr.write(
                f"tw-autogen: {name} is {value!r}, of which a part means the current folder: the system has looked for "
                "libraries of this program there. Write whole paths, and no empty part\n"
            )
    for name in ("PATH", "PYTHONPATH", *_LIBRARIES):
        more = [own] if name == "PYTHONPATH" and own in places else []
        if whole := [*more, *filter(os.path.isabs, os.environ.get(name, "").split(os.pathsep))]:
            os.environ[name] = os.pathsep.join(whole)
        else:
            os.environ.pop(name, None)  # empty, it would mean the current folder
    places.discard(own)
    if not places:
        return
    sys.path[:] = [one for one in sys.path if os.path.realpath(one) not in places]
    sys.stderr.write(
        f"tw-autogen: PYTHONPATH is {folders!r}, of which a part means the current folder, or is looked for from "
        "there: Python itself has looked for modules in it; this program doesn't. Write whole paths, and no empty "
        "part\n"
    )
