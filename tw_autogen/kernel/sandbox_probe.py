"""Which wall will stand around a kernel, found out without starting one."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from tw_autogen.kernel.environment import clean_environment
from tw_autogen.kernel.launcher import probe
from tw_autogen.kernel.launcher.sandbox import OFF
from tw_autogen.kernel.ownership import hand_over
from tw_autogen.kernel.sandbox_levels import failed, levels, plan, user_for
from tw_autogen.kernel.seatbelt import SEATBELT, interpreter_folders, profile
from tw_autogen.kernel.seatbelt import command as before
from tw_autogen.kernel.settings import KernelSettings

_SECONDS = 10.0
_HERE = Path(probe.__file__).parent
_known: set[tuple[str, str]] = set()


def standing(settings: KernelSettings) -> str:
    """Return the level that stands: one that a kernel had before, else the first that a process can put up.

    Args:
        settings: `sandbox` says which are wanted, `python` who puts it up.

    Raises:
        SandboxError: none can stand here.
    """
    for level in levels(settings):
        if level == OFF or (level, settings.python) in _known:
            return level
        why = _try(level, settings)
        if not why:
            stood(level, settings)
            return level
        failed(level, why)
    raise AssertionError("`levels` ends with an error")


def stood(level: str, settings: KernelSettings) -> None:
    """Remember that a wall has stood."""
    _known.add((level, settings.python))


def _try(level: str, settings: KernelSettings) -> str:
    """Try a sandbox; return why it can't be set up, empty if it can or if that can't be known before a kernel tries."""
    with tempfile.TemporaryDirectory(prefix="tw-trial-", ignore_cleanup_errors=True) as folder:
        uid = user_for(level)
        stage = Path(folder, "root")
        stage.mkdir()
        wanted = plan(level, settings, uid, stage=stage, own=Path(folder))
        hand_over(Path(folder), uid)
        command = [settings.python, "-I", "-S", "-c", probe.STUB, str(_HERE), json.dumps(wanted)]
        if level == SEATBELT:
            folders = interpreter_folders(settings.python)
            text = profile(
                {"read": [], "write": []},
                own=Path(folder),
                sockets=Path(folder),
                python=folders,
                network=False,
                by_file=True,
            )
            command = [*before(text), settings.python, "-I", "-S", "-c", ""]
        environment = clean_environment(os.environ)
        try:
            done = subprocess.run(
                command, env=environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    if done.returncode and level == SEATBELT:
        return done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
    return done.stdout.decode(errors="replace").strip()
