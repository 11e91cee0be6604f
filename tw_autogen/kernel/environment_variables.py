"""The environment variables of a kernel's process: a list of what may pass, not of what may not."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import site
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tw_autogen.private_files import cache_folder

_PASSED = (
    # what the system and the interpreter need
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
    "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "USERPROFILE", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
    "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONPYCACHEPREFIX",
    "PYTHONNOUSERSITE", "PYTHONUSERBASE",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV",
    # how many threads and which devices numeric libraries use
    "OMP_*", "OPENBLAS_NUM_THREADS", "MKL_*", "NUMEXPR_*", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME",
    # certificates; they are no secret
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip

SEARCHED = (
    *("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "PYTHONHOME"),
    *("PYTHONPYCACHEPREFIX", "PYTHONUSERBASE"),
)
"""Variables that name folders from which this program's own processes take programs, libraries or compiled code."""


@functools.cache
def matcher(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """Return what tells whether a name matches one of several patterns, `*` for any ending.

    Its answers are kept: each start of a kernel asks for all of the environment's names several times.

    Example:
        >>> [bool(matcher(patterns)("LC_ALL")) for patterns in (("LC_*",), ("LC_",), ())]
        [True, False, False]
    """
    found = re.compile("|".join(map(fnmatch.translate, patterns)) or "(?!)")
    return functools.lru_cache(maxsize=1024)(found.match)


def variables(host: Mapping[str, str], passes: Callable[[str], object] = lambda name: True) -> dict[str, str]:
    """Return the variables whose names pass, of an environment that other threads may change meanwhile.

    Args:
        host: The environment.
        passes: Whether a name passes.
    """
    return {name: value for name in list(host) if passes(name) and (value := host.get(name)) is not None}


def clean_environment(host: Mapping[str, str], *, allowed: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables for a process in which kernels are made.

    PYTHONDONTWRITEBYTECODE is not among those that pass: without compiled files each start takes four times as long.

    Args:
        host: This process's environment.
        allowed: Further names, `*` for any ending.
    """
    passed = variables(host, matcher((*_PASSED, *allowed)))
    for name in SEARCHED:  # a folder that is missing could be made by code
        if name in passed:
            there = _present_folders(passed.pop(name))
            passed |= {name: there} if there else {}
    if "PYTHONPATH" in passed:  # kernels begin in another folder than this process
        places = [os.path.abspath(part) for part in passed["PYTHONPATH"].split(os.pathsep) if part]
        passed["PYTHONPATH"] = os.pathsep.join(places)
    passed["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    passed["MPLCONFIGDIR"] = host.get("MPLCONFIGDIR") or str(cache_folder(host) / "matplotlib")
    passed["NO_COLOR"] = "1"
    passed["TERM"] = "dumb"
    return passed


@functools.cache
def _present_folders(value: str) -> str:
    """Return those of several folders that were there when this was called first, by their absolute paths."""
    return os.pathsep.join(os.path.abspath(part) for part in value.split(os.pathsep) if os.path.isdir(part))


def kernel_environment(
    host: Mapping[str, str], *, allowed: Iterable[str] = (), own: Path, home: str | None = None
) -> dict[str, str]:
    """Return the variables for a kernel.

    Args:
        host: This process's environment.
        allowed: Further names, `*` for any ending.
        own: The folder of the kernel's process; IPython keeps its profile there, so that no start-up file of the user
            runs, nor one that code wrote in an earlier process.
        home: The home folder of code in a sandbox; None: the user's.
    """
    passed = clean_environment(host, allowed=allowed)
    passed["IPYTHONDIR"] = str(own / "ipython")
    if home is not None:
        if site.ENABLE_USER_SITE and os.path.isdir(site.getuserbase()):  # else code's processes look below their home
            passed.setdefault("PYTHONUSERBASE", site.getuserbase())
        passed["HOME"] = home
        passed["MPLCONFIGDIR"] = str(own / "matplotlib")
        for name in ("TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"):
            passed.pop(name, None)
    return passed
