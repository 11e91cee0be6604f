"""`Installer`: the host's answer to a cell that wants packages."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import stat
import subprocess
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.approval import Approve, Proposal, decide
from tw_autogen.errors import ConfigError
from tw_autogen.kernel.pinned_paths import folder_identity, remove_same
from tw_autogen.kernel.python_process import isolated
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.lazy_module import LazyModule
from tw_autogen.safe_folder import SafeFolder, innermost_held_folder, private_folder, temporary_folder

if TYPE_CHECKING:
    from packaging import requirements
else:
    requirements = LazyModule("packaging.requirements")

_SECONDS = 600.0
_SECONDS_TO_ASK = 3600.0
_SECONDS_TO_REFUSE = 30.0
_MAX = 20
_LONGEST = 500
_SAID_CHARS = 1500
_MAX_RECORD_BYTES = 64 << 20
_INFO, _ADDRESS = ".dist-info", "direct_url.json"
_VERSION = re.compile(r"[A-Za-z0-9.*+!_-]+")
"""Has no slash: pip takes a requirement with one for a folder, if there is such a folder, and runs what lies there."""
_PIP = """
import os, runpy, sys, threading

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_roots = os.environ.pop("TW_PIP_WRITES").split(os.pathsep)
try:
    from pip._internal.locations import USER_CACHE_DIR
    _roots.append(os.environ.get("PIP_CACHE_DIR") or USER_CACHE_DIR)
except ImportError:
    pass
_roots = [os.path.realpath(one) for one in _roots]

def _refuse_outside(path, at=-1):
    if isinstance(path, int) or at not in (-1, None):
        return
    real = os.path.realpath(os.fsdecode(path))
    if real != os.path.realpath(os.devnull) and not any(real == one or real.startswith(one + os.sep) for one in _roots):
        raise PermissionError(f"pip writes nothing here but what it installs, and not {real}")

def _is_for_keyring():
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] != "keyring":
        frame = frame.f_back
    return frame is not None

def _refuse(event, details):
    if event == "open" and details[2] & _WRITING:
        _refuse_outside(details[0])
    elif event in ("os.mkdir", "os.chmod"):
        _refuse_outside(details[0], details[2])
    elif event in ("os.remove", "os.rmdir"):
        _refuse_outside(details[0], details[1])
    elif event == "os.rename":
        _refuse_outside(details[0], details[2])
        _refuse_outside(details[1], details[3])
    if event in ("os.symlink", "os.link"):
        raise PermissionError("pip makes no links here: only wheels are installed, which hold none")
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty"):
        words = details[1] if event == "subprocess.Popen" and isinstance(details[1], list) else []
        program = os.fsdecode(details[0] or (words or [""])[0]) if details and event != "os.system" else event
        name = os.path.basename(program).lower().removesuffix(".exe")
        asks_system = name.startswith("ld-musl-") or words[1:3] == ["-sS", "-c"]
        if name != "keyring" and not asks_system and not _is_for_keyring():
            raise PermissionError(f"pip starts no programs here ({program}): wheels are installed, nothing is built")

def _end_with_host():
    os.read(0, 1)
    os._exit(1)

sys.addaudithook(_refuse)
threading.Thread(target=_end_with_host, daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Runs pip; a wheel may want what has an address, which pip builds in spite of `--only-binary`.

pip starts programs to build, and to fetch what lies in a repository of source code: these are refused. The others are
`keyring`, or what that module starts, if the user has chosen it, for an index's password, and what tells which wheels
fit (musl's loader, and on macOS Python itself). Before it would build, pip unpacks: through a link of the archive it
would write anywhere, so links are refused, too. A wheel names its scripts, by absolute paths if it likes, so pip writes
only to its own folders and its cache. Whatever it waits for, it ends with the host, which holds the other end of its
input.
"""
_NEVER = "nothing can be installed here, because kernel.install is 'never' ('ask' or 'allow' would let the host do it)"


class Installer:
    """Lets pip install packages for one session, in a folder that its code can read and not write.

    Only names with version specifiers are taken, no path, address or option; where from is for the host's own
    environment and configuration to say. Only wheels are taken, and pip starts no programs: an installation then runs
    no foreign code in the host, whatever the packages want.

    Args:
        settings: `install` and `python`.
        folder: The kernel's; packages lie beside it in a folder that is kept open, as a session's is, and else in a
            temporary folder: another kernel's code may be able to write beside it, and to exchange what is above it.
        approve: Decides where `install` is `ask`; None: nobody, so nothing is installed.
    """

    def __init__(self, settings: KernelSettings, folder: Path, approve: Approve | None = None) -> None:
        self._settings = settings
        self._approve = approve
        self.folder = folder.with_name(f"{folder.name}.packages")
        self.close: Callable[[], object] = _keep_folder
        """Remove the temporary folder, if there is one."""
        if settings.install != "never" and not innermost_held_folder(folder.parent):
            self.folder = temporary_folder("tw-packages-")
            self.folder.chmod(0o755)  # root's kernels are another user
            made = folder_identity(self.folder)
            self.close = weakref.finalize(self, remove_same, self.folder, made, os.getpid())

    @property
    def max_seconds(self) -> float:
        """How long one call may take, with reading what the cell asks for and the User's time to decide."""
        asking = {"never": 0.0, "allow": _SECONDS}.get(self._settings.install, _SECONDS + _SECONDS_TO_ASK)
        return _SECONDS_TO_REFUSE + asking

    @property
    def refusal(self) -> dict[str, Any] | None:
        """What every call gets, whatever it asks for; None where something can be installed."""
        return {"ok": False, "text": _NEVER} if self._settings.install == "never" else None

    def prepare(self) -> str:
        """Make the folder; give its path, empty where nothing is ever installed.

        Raises:
            ConfigError: something of that name is there, and not ours.
        """
        if self._settings.install == "never":
            return ""
        with SafeFolder(self.folder.parent) as beside:
            try:
                beside.make_folder(self.folder.name, mode=0o755)
            except PermissionError as error:
                raise ConfigError(f"{self.folder}: {error.strerror}, in place of a folder for packages") from error
        return str(self.folder)

    def __call__(self, wanted: Any) -> dict[str, Any]:
        """Install what a cell asks for; its words may be anything.

        Returns:
            `ok`, and `text` that says what was done or why not.
        """
        if self.refusal is not None:
            return self.refusal
        if not isinstance(wanted, list) or not 0 < len(wanted) <= _MAX:
            return {"ok": False, "text": f"name between 1 and {_MAX} packages: `%pip install name`"}
        try:
            names = [_parse_requirement(one) for one in wanted]
        except (requirements.InvalidRequirement, ValueError) as error:
            return {"ok": False, "text": f"only names and versions of packages can be installed: {error}"}
        if self._settings.install == "ask":
            if self._approve is None:
                return {"ok": False, "text": "kernel.install is 'ask', and nobody is here to be asked"}
            if not decide(self._approve, Proposal("packages", "\n".join(names))).approved:
                return {"ok": False, "text": f"the User does not allow installing {', '.join(names)}"}
        return self._run_pip(names)

    def _run_pip(self, names: Sequence[str]) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment = {**isolated(environment), "PYTHONSAFEPATH": "1", "_PIP_RUNNING_IN_SUBPROCESS": "1"}
        more: dict[str, Any] = {"env": environment, **({"umask": 0o022} if os.name == "posix" else {})}
        with (
            private_folder("tw-pip-") as nowhere,
            private_folder("tw-pip-") as made,
            private_folder("tw-pip-") as temporary,
        ):
            environment["TW_PIP_WRITES"] = f"{made}{os.pathsep}{temporary}"
            environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
            command = [self._settings.python, "-c", _PIP, "install", "--target", str(made), "--upgrade"]
            command += ["--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet", "--", *names]
            heard, held = os.pipe()
            try:  # no file in the empty folder is taken for a package
                done = subprocess.run(command, cwd=nowhere, stdin=heard, capture_output=True, timeout=_SECONDS, **more)
                if not done.returncode:
                    self._copy_packages(made)
            except (OSError, subprocess.TimeoutExpired) as error:
                return {"ok": False, "text": f"pip could not install {', '.join(names)}: {error}"}
            finally:
                os.close(heard)
                os.close(held)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-_SAID_CHARS:]
            return {"ok": False, "text": f"pip could not install {', '.join(names)}:\n{said}"}
        return {"ok": True, "text": f"Installed {', '.join(names)}."}

    def _copy_packages(self, made: Path) -> None:
        """Copy what pip has made, by descriptor, in place of other versions; several packages may share a folder.

        Raises:
            OSError: some of it comes from no index, or can't be copied.
        """
        with SafeFolder(made) as source, SafeFolder(self.prepare()) as target:
            entries = list(source.walk())
            for entry in entries:
                info, _, inner = entry.name.partition("/")
                if info.endswith(_INFO) and inner == _ADDRESS:
                    name = info.partition("-")[0]
                    raise OSError(f"a package wants {name} from a file or an address, not from an index")
            projects = {one.name.partition("-")[0].lower() for one in entries if one.name.endswith(_INFO)}
            for name in [one.name for one in target.walk(enter=lambda name: False)]:
                if name.endswith(_INFO) and name.partition("-")[0].lower() in projects:
                    _remove_version(target, name)
            for entry in entries:
                if entry.is_folder:
                    target.make_folder(entry.name)
                elif entry.is_file:
                    with source.open_file(entry.name) as file:
                        target.copy_in(file, entry.name, mode=stat.S_IMODE(entry.info.st_mode))


def _remove_version(packages: SafeFolder, info: str) -> None:
    """Remove the files of an installed version.

    Args:
        packages: Where it is installed.
        info: The name of the folder that lists them.
    """
    with contextlib.suppress(OSError, csv.Error):
        record = packages.read_file(f"{info}/RECORD", limit_bytes=_MAX_RECORD_BYTES).decode("utf-8", "replace")
        for path, *_ in filter(None, csv.reader(record.splitlines())):
            with contextlib.suppress(OSError):  # scripts lie elsewhere than the list says
                packages.remove(path)
    packages.remove_tree(info)


def _parse_requirement(text: Any) -> str:
    """Read a requirement, and give it anew, so that pip gets nothing but what was understood.

    Raises:
        InvalidRequirement, ValueError: it is none, or more than a name with extras and versions.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError(f"each is a text of at most {_LONGEST} characters")
    found = requirements.Requirement(text)
    if found.url or found.marker:
        raise ValueError(f"{text!r} has an address or a condition")
    if not all(_VERSION.fullmatch(one.version) for one in found.specifier):  # behind `===` anything may stand
        raise ValueError(f"{text!r} has a version that is none")
    extras = f"[{','.join(sorted(found.extras))}]" if found.extras else ""
    return f"{found.name}{extras}{found.specifier}"


def _keep_folder() -> None:
    """Leave the folder where it is."""
