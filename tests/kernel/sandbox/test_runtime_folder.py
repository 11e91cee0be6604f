"""The host's files in the runtime folder of a kernel (connection file, log, sockets) are the host's alone."""

import os

_TRIES = """
import contextlib, os
ways = {{
    "remove": os.remove,
    "rename": lambda path: os.rename(path, path + ".old"),
    "replace": lambda path: (os.symlink("/", "link"), os.replace("link", path)),
    "open": lambda path: open(path, "r+b").close(),
    "mode": lambda path: os.chmod(path, 0o777),
    "make": lambda path: open(path + ".new", "wb").close(),
    "move the folder": lambda path: os.rename(os.path.dirname(path), os.path.dirname(path) + ".old"),
}}
for name in {names!r}:
    for function in ways.values():
        with contextlib.suppress(OSError):
            function(os.path.join({runtime!r}, name))
"""


def state(folder):
    """Give name, file, mode and owner of what lies in a folder, but for those that code may write to."""
    found = [(name, os.lstat(folder / name)) for name in os.listdir(folder) if not name.isdigit()]
    return sorted((name, one.st_ino, one.st_mode, one.st_uid) for name, one in found)


# In some sandboxes the calls seem to succeed: on a /tmp of the kernel's own, or where nothing is done without an error.
def test_code_changes_nothing_in_the_runtime_folder_of_its_kernel(sandbox):
    with sandbox.kernel() as kernel:
        assert kernel.execute("import os", seconds=60).ok
        runtime = kernel._live._connection.runtime
        before = state(runtime)
        names = [name for name, *_ in before]
        assert {"connection.json", "log", "k-1"} < set(names)

        execution = kernel.execute(_TRIES.format(names=names, runtime=str(runtime)), seconds=60)

        assert execution.ok, execution.error
        assert state(runtime) == before
