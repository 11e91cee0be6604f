"""`LocalKernel`: an IPython kernel on this machine, one process for one session."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tw_autogen.approval import Approve
from tw_autogen.errors import ConfigError, PluginLoadError, SandboxError
from tw_autogen.kernel.cell_journal import CellJournal
from tw_autogen.kernel.client import KernelClient, KernelHandle
from tw_autogen.kernel.guest.pip_install import INSTALL
from tw_autogen.kernel.kernel import Execution, Loadable
from tw_autogen.kernel.kernel_folders import Kept, KernelFolders
from tw_autogen.kernel.kernel_process import StartProcess
from tw_autogen.kernel.kernel_start import start_with
from tw_autogen.kernel.launcher.known_paths import resolve
from tw_autogen.kernel.launcher.readable_files import LISTED, readable_pieces
from tw_autogen.kernel.launcher.sandbox import OFF
from tw_autogen.kernel.live_kernel import LiveKernel
from tw_autogen.kernel.package_installer import Installer
from tw_autogen.kernel.path_policy import (
    check_granted,
    checked_kernel_folder,
    closed_reason,
    exposed_reason,
    readable_by_all_reason,
    shut_off_reason,
    too_broad_reason,
)
from tw_autogen.kernel.pool import KernelPool, default_pool
from tw_autogen.kernel.python_process import guard_own_imports
from tw_autogen.kernel.recovery import Recovery, Rerun
from tw_autogen.kernel.sandbox_levels import STARTED_OTHERWISE, available_level, describe_sandbox
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.named_folders import code_writable_symlink
from tw_autogen.python_source import expression_of

_MISSED = re.compile("ModuleNotFoundError|ImportError|FileNotFoundError|PermissionError")
_SETTING = "kernel.write="
_REFUSED = (" would let it write there.", " would let code write there.")
"""Parts of the line of `guest.sandbox_hints` about a place where code may not write."""
_MAX_PLACE_CHARS = 10_000


class LocalKernel(LiveKernel):
    """An IPython kernel on this machine, started when it is first needed.

    It runs this process's interpreter, in the folder, with an environment that holds no secrets, behind the strongest
    sandbox that can be set up on this system (`KernelSettings.sandbox`). On Linux it is forked from a process that has
    imported pandas already; elsewhere, or with `fork=False`, kernels that were started for themselves are kept ready.

    Args:
        folder: Where code runs, with all in it the code's to read and write; None: a temporary one, removed by `close`.
            Root's files there belong to the kernel's user until it is closed; then they have the modes that they had,
            and what code has made is root's, who alone may write to it. A
            kernel knows no settings, and no trust of the current folder: where somebody else may have made that (a
            download), a link of theirs on the way is followed, unless code could have made it. `open_session(folder=…)`
            refuses it.
        settings: Limits, interpreter, environment, sandbox.
        pool: Where kernels come from; None: the one of this process.
        start: Makes the process in another way, outside any sandbox of ours.
        approve: Asked for packages that a cell wants, where the setting `install` is `ask`.
        on_refused: Called with the folder where a cell failed to write because it may not; returns what the cell's
            error says in place of the setting that would allow it, or nothing.
        resume: Bring back the variables that an earlier kernel had in this folder, whose process or host has ended,
            however it ended, and keep what a later one needs for that: a journal of the cells that ran to their end,
            and with `KernelSettings.checkpoint_seconds` copies of the variables. It comes about with the first cell,
            `get`, `put` or `variables()`: load plugins and serve functions before.
        rerun: Whether cells may be run again that no checkpoint covers, where `resume`: always, never, or what a
            function decides that is given their code. Those of a kernel that ends in this process's time are.
        trust: Resume also what this user did not write in this folder: it came from elsewhere, or was moved or copied,
            or code of another kernel has written there. Without it that counts as missing, which the log of the first
            `Execution` says; it stays there until a cell has run, and then beside it as `.checkpoint.old`.

    Raises:
        ConfigError: `resume` without a sandbox, or a folder that holds more than code may have: the home folder, keys,
            the system's.

    What resuming means: variables come from the last checkpoint, and the cells behind it are run again; without one,
    or if that is quicker, all cells are. A cell that is run again does again all it did, with the clock, the random
    numbers and the files of now: it writes its files once more, and draws its charts. Cells that called functions of
    the host (agents, databases) are not run again, because their effects are not the kernel's to repeat; behind each of
    these a checkpoint is written at once, if they are on at all. Cells that failed are not run again; a checkpoint
    holds what they left. A checkpoint has variables alone: the working folder, seeds of random numbers, options of
    modules and `sys.path` are those of a fresh kernel. Tables, and values of more than 32 MB, that the host has put in
    come back from a checkpoint only, once this process has ended. All that did not come back is named in the log of
    the next `Execution`: names, cells, and what cells have set so by the usual names.

    Journal and checkpoint lie in the folder, where code can change them. Lines of the journal are sealed by the host
    with this user's key, for this folder, and a checkpoint by the kernel that writes it, with a key for this folder
    that it is given: what code of other kernels writes there has no seal, and counts as missing. What this kernel's own
    code has put into its checkpoint is read in the kernel only, so it can do what a cell there can do and no more; for
    this reason there is no resuming with `sandbox="off"`, and a folder whose code was not trusted must not be resumed
    in a weaker sandbox than it had.

    A session whose code ran in `folder` is resumed by giving `open_session` the argument
    `kernel=lambda _: LocalKernel(folder, resume=True)`; its rounds, by `Session.remember`.

    Example:
        >>> with LocalKernel() as kernel:
        ...     kernel.execute("x = 20", seconds=30).ok, kernel.execute("x + 1", seconds=30).result
        (True, '21')
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        settings: KernelSettings | None = None,
        pool: KernelPool | None = None,
        start: StartProcess | None = None,
        approve: Approve | None = None,
        on_refused: Callable[[str], str] | None = None,
        resume: bool = False,
        rerun: Rerun = True,
        trust: bool = False,
    ) -> None:
        if folder is not None and start is None:
            checked_kernel_folder(Path(folder), settings or KernelSettings())
        super().__init__(folder, settings=settings)
        self._installer = Installer(self._settings, self.folder, approve)
        install = self._installer
        self._served.add_unnamed(INSTALL, install, install.max_seconds, refusal=install.refusal)
        if resume and (self._settings.sandbox == OFF or start is not None):
            raise ConfigError(
                f"{self.folder}: no resuming without a sandbox, because code that ran here may have written what would "
                "be run now; leave kernel.sandbox at 'auto', or begin afresh without `resume`"
            )
        if resume or self._settings.checkpoint_seconds:
            checkpoints = self._settings.checkpoint_seconds > 0
            self._recovery = Recovery(self.folder, resumes=resume, checkpoints=checkpoints, rerun=rerun, trust=trust)
        self._start = start
        self._on_refused = on_refused
        self._pool = pool or default_pool()
        self._read: tuple[str, ...] = ()
        if start is None:
            self._pool.prepare(self._settings)
        if self._settings.sandbox != OFF:
            guard_own_imports((self.folder, *self._pinned.granted().write))

    def _explained(self, ran: Execution) -> Execution:
        if self._on_refused is None or ran.ok:
            return ran
        lines = ran.error.split("\n")
        line = next((line for line in lines if line.endswith(_REFUSED) and f"{_SETTING}['" in line), "")
        places = line.removesuffix(_REFUSED[0]).removesuffix(_REFUSED[1]).rpartition(_SETTING)[2]
        try:
            (place,) = ast.literal_eval(expression_of(places[:_MAX_PLACE_CHARS]))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # none, or code wrote the line itself
            return ran
        reason = self._on_refused(str(place))
        return replace(ran, error=ran.error.replace(line, reason)) if reason else ran

    @property
    def granted(self) -> frozenset[str]:
        """The paths of `kernel.read` and `kernel.write` that are there, as they were resolved first."""
        settings = self._pinned.granted()
        return frozenset((*settings.read, *settings.write))

    def show(self, path: Path) -> bool:
        """Allow code to read a file at its own place; False if a cell has run and code can't read it already.

        Args:
            path: Absolute, links resolved.

        Returns:
            Whether code can; False also where the kernel's user could not reach the file, or it lies in a folder that
            holds too much to be granted.
        """
        if self._start is not None:
            return False
        if self._settings.sandbox == OFF:
            return True
        above = [parent for parent in path.parents if str(parent) != path.anchor]
        if closed_reason(path, self._settings):
            return False
        granted = [Path(path).expanduser().resolve() for path in (*self._settings.read, *self._settings.write)]
        inside = [folder for folder in granted if path.is_relative_to(folder)]
        if inside:
            below = [folder for folder in above if folder.is_relative_to(inside[0])]
            return not any(closed_reason(folder, self._settings, "x") for folder in below)
        if str(path) in self._read:
            return True
        if self._live is not None and not self._fresh:
            return False
        self._pinned.add((str(path),))
        if self._pinned.real((str(path),)) != (str(path),):  # a link has taken its place
            return False
        self._read = (*self._read, str(path))
        if self._live is not None:
            self._end()
        return True

    def _place(self, process: str) -> str:
        if self._live is None:
            return f"local kernel, {self._settings.python}, {process}, {self._sandbox_line()}"
        return f"local kernel, {process}, {self._live.sandbox}"

    @staticmethod
    def check_settings(settings: KernelSettings, folder: Path | None = None) -> None:
        """Refuse settings with which no kernel starts, before one is needed.

        Args:
            settings: `sandbox`, `read`, `write` and the limits are looked at.
            folder: Where the kernel is to work; None: not known yet.

        Raises:
            SandboxError: no sandbox can be set up here.
            ConfigError: a folder can't be granted, or a limit is too low; names the setting, and what to do.
        """
        available_level(settings)
        settings.check_limits()
        check_granted(settings, folder)

    @staticmethod
    def check_folder(folder: Path, settings: KernelSettings) -> None:
        """Refuse to let code work in a folder that holds more than its own.

        Args:
            folder: Where a kernel is to work.
            settings: Without a sandbox nothing is refused.

        Raises:
            ConfigError: names the folder, why, and what to do.
        """
        checked_kernel_folder(folder, settings)

    @staticmethod
    def unreadable_reason(granted: Path, settings: KernelSettings, *, folder: Path) -> str:
        """Return the reason why code may not, or can't, be granted a whole folder to read; empty if it can.

        Args:
            granted: Absolute, links resolved.
            settings: `sandbox` says what keeps code from reading.
            folder: Where the kernel is to work.

        Raises:
            SandboxError: no sandbox can be set up here.
        """
        hidden = shut_off_reason(folder, granted, settings)
        why = too_broad_reason(granted) or closed_reason(granted, settings)
        why = why or exposed_reason(folder, granted, settings)
        return why or (f"above the sessions' folder, and {hidden}" if hidden else "")

    @staticmethod
    def readable_by_all_reason(folder: Path, settings: KernelSettings, more: Mapping[str, str]) -> str:
        """Return in words the grant, Python environment or folder of the system that holds a folder; empty if none.

        Code of every kernel with these settings may read there.

        Args:
            folder: Absolute, links resolved; it need not exist.
            settings: `read`, `write`, and the interpreter.
            more: Other paths that are granted, by the setting that names each.
        """
        return readable_by_all_reason(folder, settings, more)

    @staticmethod
    def sandbox_description(settings: KernelSettings) -> str:
        """Describe in one line the sandbox that a kernel would get, and what would raise a stronger one.

        Raises:
            SandboxError: none can be set up here.
        """
        return describe_sandbox(available_level(settings), settings)

    @staticmethod
    def forget(folder: Path) -> None:
        """Remove the checkpoints and the journal of cells from a folder in which no kernel works any more."""
        CellJournal(folder).clear()

    @staticmethod
    def adopt(folder: Path, source: Path) -> None:
        """Seal checkpoints and the journal of cells in a copy of a folder, as far as this user has written them.

        Args:
            folder: The copy.
            source: The folder that was copied.
        """
        CellJournal(folder).adopt(source)

    def _sandbox_line(self) -> str:
        """Describe the sandbox of the process in one line."""
        if self._start is not None:
            return STARTED_OTHERWISE
        try:
            return self.sandbox_description(self._settings)
        except SandboxError as error:
            return str(error)

    def _open(self) -> KernelHandle:
        kept: Mapping[str, Kept] = {}
        if self._start is None:
            self._settings.check_limits()
            kept = check_granted(self._settings, self.folder, pinned=self._pinned)
        packages = self._installer.prepare()
        read = self._pinned.real((*self._read, *([packages] if packages else [])))
        place = KernelFolders(self.folder, read, known=self._pinned.file_identities(), kept=kept)
        if self._start is not None:
            handle = start_with(self._start, self._settings, place, sandbox=STARTED_OTHERWISE)
        else:
            granted = self._pinned.granted()
            handle = self._pool.take(granted, place).handle(granted)
        return replace(handle, options={**handle.options, "packages": packages})

    def close(self) -> None:
        """End the process; files stay, unless the folder is ours."""
        super().close()
        self._installer.close()

    def _before_plugin(self, plugin: Loadable) -> None:
        """Allow reading what lies beside a plugin, but for dotfiles and sessions.

        A fresh kernel is replaced by one that may. Where that is too much, such as the home folder, or would not help,
        because the kernel's user can't pass it, it may read the plugin's file alone. Nothing is granted over a link
        that code may have made.
        """
        if plugin.path is None or self._start is not None or self._settings.sandbox == OFF:
            return
        found = resolve(os.path.abspath(plugin.path), (str(self.folder), *self._pinned.granted().write))
        if not found or code_writable_symlink(plugin.path):
            return
        path = Path(found)
        beside, settings = path.parent, self._settings
        alone = (
            too_broad_reason(beside)
            or closed_reason(beside, settings, "x")
            or shut_off_reason(self.folder, beside, settings)
        )
        granted = () if alone else readable_pieces(str(beside), package=True, session=str(self.folder))
        more = [path for path in (*granted, str(path)) if path not in self._read and str(beside) not in granted]
        more = [str(beside)] if str(beside) in granted and str(beside) not in self._read else more
        self._pinned.add([path for path in more if path.removesuffix(LISTED) != str(beside)], optional=True)
        more = [path for path in more if self._pinned.real((path,)) == (path,)]
        if more:
            self._read = (*self._read, *more)
            if self._live is not None and self._fresh:
                self._end()

    def _load(self, live: KernelClient, plugin: Loadable) -> None:
        try:
            super()._load(live, plugin)
        except PluginLoadError as error:
            folder = plugin.path.resolve().parent if plugin.path else None
            if folder is None or self._start is not None or not _MISSED.match(error.problem):
                raise
            why = too_broad_reason(folder)
            why = f"{why}: put the plugin into a folder of its own" if why else closed_reason(folder, self._settings)
            if not why:
                raise
            problem = f"{error.problem}; code can't read what lies beside it, because {folder} is {why}"
            raise PluginLoadError(problem, path=error.path, line=error.line) from error
