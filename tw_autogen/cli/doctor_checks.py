"""What `doctor` looks at; a check is a value, and finding something wrong is no error."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from tw_autogen.cli.options import Options
from tw_autogen.cli.session_opening import project_of
from tw_autogen.cli.trust_prompt import HOW
from tw_autogen.errors import ConfigError, KernelError, ModelError, NoModelError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.model import ModelSettings, OpenAIModel, resolve_model
from tw_autogen.planner import probe_format
from tw_autogen.safe_folder import private_folder
from tw_autogen.session import read_settings, trust_lines
from tw_autogen.settings import Settings

State = Literal["ok", "warn", "fail"]

_NEEDED = ("httpx", "ipykernel", "jupyter_client", "pandas")
_START_SECONDS = 5.0
_SHOWN_MODELS = 8


@dataclass(frozen=True)
class DoctorCheck:
    """One thing that was looked at.

    Args:
        name: What.
        state: `warn` is for what works without, or works badly; `fail` for what must be mended.
        found: In words.
        remedy: What to do; empty if nothing need be done.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


def check_python() -> Iterator[DoctorCheck]:
    """Look at the interpreter."""
    found = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro} at {sys.executable}"
    known = (3, 10) <= sys.version_info[:2] <= (3, 13)
    yield DoctorCheck("python", "ok" if known else "warn", found, "" if known else "tested with Python 3.10 to 3.13")


def check_packages() -> Iterator[DoctorCheck]:
    """Look at the distributions that are needed, and at matplotlib."""
    own = _version("tw-autogen")
    yield DoctorCheck("tw_autogen", "ok", own or "from a source folder, not installed")
    for name in _NEEDED:
        version = _version(name)
        remedy = "" if version else f"pip install {name}"
        yield DoctorCheck(name, "ok" if version else "fail", version or "missing", remedy)
    charts = _version("matplotlib")
    remedy = "" if charts else 'without it charts are SVG files written by hand: pip install "tw-autogen[data]"'
    yield DoctorCheck("matplotlib", "ok" if charts else "warn", charts or "missing", remedy)


def check_hosts() -> Iterator[DoctorCheck]:
    """Look which hosts are installed; several distributions own the module `autogen`, and overwrite its files."""
    installed = metadata.packages_distributions()
    owners = sorted(set(installed.get("autogen", ())))
    agentchat = "autogen_agentchat" in installed
    if agentchat:
        yield DoctorCheck("autogen", "ok", f"autogen-agentchat {_version('autogen-agentchat')}")
    if not owners and not agentchat:
        yield DoctorCheck("autogen", "ok", "not installed; only TaskWeaverAgent needs it")
    elif len(owners) == 1:
        yield DoctorCheck("autogen", "ok", f"{owners[0]} {_version(owners[0])}")
    elif owners:
        both = " ".join(owners)
        remedy = f'pip uninstall -y {both} && pip install "tw-autogen[autogen]"'
        yield DoctorCheck(
            "autogen", "fail", f"owned by {' and '.join(owners)}, which overwrite each other's files", remedy
        )


def check_folder_trust(options: Options) -> Iterator[DoctorCheck]:
    """See whether the folder wants what it gets only if it is trusted; nothing of an untrusted one is run."""
    with contextlib.suppress(ConfigError):  # what is wrong with settings is told with the kernel
        for line in trust_lines(_read_settings(options), HOW):
            description, _, remedy = line.partition("; trust this folder")
            yield DoctorCheck("folder", "warn", description, f"trust this folder{remedy}" if remedy else "")


def check_project(options: Options) -> Iterator[DoctorCheck]:
    """See which plugins a project brings, and what of it has no effect here; nothing of it is run."""
    try:
        settings = _read_settings(options)
    except ConfigError:  # what is wrong with settings is told with the kernel
        return
    try:
        project = project_of(options, settings)
    except ConfigError as error:
        yield DoctorCheck("project", "fail", str(error), "correct the setting")
        return
    if project and project.found:
        yield DoctorCheck("project", "ok", project.found)
    for remark in project.remarks if project else ():
        yield DoctorCheck("project", "warn", remark)


def check_kernel(options: Options) -> Iterator[DoctorCheck]:
    """See which sandbox can be set up, start a kernel in it, and let it add."""
    try:
        settings = _read_settings(options).read("kernel", KernelSettings)
    except ConfigError as error:
        yield DoctorCheck("kernel", "fail", str(error), "correct the setting")
        return
    sandbox = _check_sandbox(settings)
    yield sandbox
    if sandbox.state == "fail":
        return
    started = time.monotonic()
    with private_folder("tw-doctor-") as folder:
        try:
            with LocalKernel(folder, settings=settings) as kernel:
                ran = kernel.execute("1 + 1", seconds=settings.start_seconds)
                seconds = time.monotonic() - started
                where = kernel.where
        except KernelError as error:
            yield DoctorCheck("kernel", "fail", str(error), f"{settings.python} -m pip install --upgrade ipykernel")
            return
    if ran.result != "2":
        yield DoctorCheck("kernel", "fail", f"1 + 1 gave {ran.result or ran.error}", "pip install --upgrade ipykernel")
    elif seconds > _START_SECONDS:
        yield DoctorCheck("kernel", "warn", f"{where}: 1 + 1 took {seconds:.1f} s", "a busy machine, or a slow disk")
    else:
        yield DoctorCheck("kernel", "ok", f"{where}: 1 + 1 in {seconds:.1f} s")


def _check_sandbox(settings: KernelSettings) -> DoctorCheck:
    try:
        found = LocalKernel.sandbox_description(settings).removeprefix("sandbox: ")
    except SandboxError as error:
        found, _, remedy = str(error).partition(f"{SandboxError.REMEDY} ")
        return DoctorCheck("sandbox", "fail", found.strip(), remedy)
    off = settings.sandbox == "off"
    return DoctorCheck("sandbox", "warn", found, "kernel.sandbox=auto") if off else DoctorCheck("sandbox", "ok", found)


def check_model(options: Options) -> Iterator[DoctorCheck]:
    """Find the model that is configured, ask its server which ones it has, and probe the Planner's format."""
    try:
        read = _read_settings(options)
        settings = read.read("model", ModelSettings)
        origins = [f"{key} from {read.origin(f'model.{key}')}" for key in ("base_url", "name", "api_key")]
        model = resolve_model(settings)
    except NoModelError as error:
        message, _, remedy = str(error).partition("\n")
        yield DoctorCheck("model", "warn", message, remedy)
        return
    except ConfigError as error:
        yield DoctorCheck("model", "fail", str(error), "correct the setting")
        return
    except ModelError as error:
        remedy = "start the server, or correct --base-url" if "Is the server running" in str(error) else ""
        yield DoctorCheck("model", "fail", str(error), remedy)
        return
    yield DoctorCheck("model", "ok", f"{model.name} at {model.base_url} ({', '.join(origins)})")
    yield from _check_server(model)


def _check_server(model: OpenAIModel) -> Iterator[DoctorCheck]:
    try:
        names = model.models()
    except ModelError as error:  # many gateways have no list, so this alone is no failure
        yield DoctorCheck("model list", "warn", str(error))
    else:
        more = f" and {len(names) - _SHOWN_MODELS} more" if len(names) > _SHOWN_MODELS else ""
        known = model.name in names or not names
        remedy = "" if known else f"{model.name} is not among them: --model NAME"
        found = f"{', '.join(names[:_SHOWN_MODELS]) or 'empty'}{more}"
        yield DoctorCheck("model list", "ok" if known else "warn", found, remedy)
    try:
        probe = probe_format(model)
    except ModelError as error:
        yield DoctorCheck("model answers", "fail", str(error), "check key, address and model name")
        return
    state: State = "ok" if not probe.problems else "warn" if probe.kept else "fail"
    remedy = "" if state == "ok" else f"a larger model, or one with JSON output; first problem: {probe.problems[0]}"
    yield DoctorCheck("model format", state, f"kept the Planner's format {probe.kept} of {probe.asked} times", remedy)


def _read_settings(options: Options) -> Settings:
    return read_settings(options.keywords, project=options.project, trust=options.trust)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
