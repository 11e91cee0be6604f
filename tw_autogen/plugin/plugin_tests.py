"""Plugins loaded where they run, and the tests in their files run there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.errors import PluginLoadError
from tw_autogen.kernel import Kernel
from tw_autogen.plugin.check import Flaw
from tw_autogen.plugin.host_plugin import HostPlugin
from tw_autogen.plugin.source import parse_source, tests_in
from tw_autogen.plugin.spec import PluginSpec

_OUTCOMES = "plugin_test_outcomes"
_CELL = "from tw_autogen.plugin import run_plugin_tests\n{outcomes} = run_plugin_tests({name})"


@dataclass
class PluginTests:
    """What came of loading plugins and running the tests in their files.

    Args:
        passed: How many tests passed.
        failed: How many did not.
        unloaded: The names of plugins that could not be loaded.
        flaws: What is wrong.
    """

    passed: int = 0
    failed: int = 0
    unloaded: list[str] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)

    def in_kernel(self, specs: Iterable[PluginSpec], kernel: Kernel, *, seconds: float) -> None:
        """Load kernel-run plugins into a kernel, and run their tests there.

        Args:
            specs: Each checked already.
            kernel: Where; a process that a test ends is started again.
            seconds: How long the tests of one plugin may take.
        """
        for spec in specs:
            try:
                kernel.load(spec.loadable())
            except PluginLoadError as error:
                self._not_loaded(spec, error)
                continue
            if not tests_in(parse_source(spec.source())):
                continue
            ran = kernel.execute(_CELL.format(name=spec.name, outcomes=_OUTCOMES), seconds=seconds)
            if ran.ok:
                self._count(spec, [(name, problem) for name, problem in kernel.get(_OUTCOMES)])
            else:
                last = ran.error.strip().splitlines()[-1:] or ["the kernel's process ended"]
                self._count(spec, [("its tests", last[0])])

    def run_in_host(self, specs: Iterable[PluginSpec], folder: Path) -> None:
        """Load host-run plugins into this process, and run their tests here: with all that this process may do.

        Args:
            specs: Each checked already.
            folder: Stands for the session's folder.
        """
        for spec in specs:
            try:
                with HostPlugin(spec, folder=folder) as loaded:
                    self._count(spec, loaded.run_tests())
            except PluginLoadError as error:
                self._not_loaded(spec, error)

    def _count(self, spec: PluginSpec, outcomes: Iterable[tuple[str, str]]) -> None:
        for name, problem in outcomes:
            if problem:
                self.failed += 1
                what = f"{spec.name}: {name} failed in the {spec.runs_in}: {problem}"
                self.flaws.append(Flaw(spec.source(), what, _remedy(spec)).of(spec))
            else:
                self.passed += 1

    def _not_loaded(self, spec: PluginSpec, error: PluginLoadError) -> None:
        what = f"{spec.name} does not load in the {spec.runs_in}: {error.problem}"
        self.unloaded.append(spec.name)
        self.flaws.append(Flaw(error.path, what, _remedy(spec), line=error.line).of(spec))


def _remedy(spec: PluginSpec) -> str:
    if spec.runs_in == "host":
        return "fix the plugin, or its test"
    return "fix the plugin, or its test; what needs the network, secrets or other files takes `runs_in: host`"
