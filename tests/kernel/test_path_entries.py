"""Entries of the path for imports that lie in folders which code writes to: what code puts there opens nothing else."""

import logging
import os
import subprocess
import sys

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.pool import KernelPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a launcher grants on Linux")
SECRET = "hunter2"


@pytest.fixture
def home(tmp_path):
    """Make folders with secrets: by their names, what installed packages and projects are granted by."""
    files = ("keys/id", "keys/key.py", "keys-packages/id", "target/id", "target/x.dist-info/METADATA")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SECRET, encoding="utf-8")
    for name in ("src", "lib", "site", "pkg/sub"):
        (tmp_path / "project" / name).mkdir(parents=True)
        (tmp_path / "project" / name / "__init__.py").touch()
    return tmp_path


@pytest.mark.parametrize("how", ["folder", "write"])
@pytest.mark.parametrize("level", ["namespaces", "landlock", "bubblewrap"])
def test_no_kernel_reads_what_links_lead_to_that_code_put_in_place_of_entries(home, monkeypatch, level, how):
    project = home / "project"
    for parent in (home, *home.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o755)
    for one in (project, project / "pkg"):
        one.chmod(0o777)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(project / one) for one in ("src", "lib", "site", ".")))
    places = {"src": "keys/id", "lib": "keys-packages", "site": "target", "pkg/sub": "keys"}
    exchange = "import os\n" + "".join(
        f"os.rename({str(project / place)!r}, {str(project / place)!r} + '0')\n"
        f"os.symlink({str(home / target)!r}, {str(project / place)!r})\n"
        for place, target in places.items()
    )
    secrets = [str(path) for path in home.glob("*/id")]
    read = f"""
import os
def opened(path):
    try:
        return open(path).read()
    except OSError:
        return ""
[path for path in {secrets!r} if opened(path)]"""
    settings = KernelSettings(sandbox=level, preload=(), warm=0, fork=level != "bubblewrap", allow_symlinks=True)
    if how == "write":
        settings = KernelSettings(**{**vars(settings), "write": (str(project),)})
    with KernelPool() as pool:
        if settings.fork:
            pool.prepare(settings)
            pool.wait(settings, 60)
        folder = project if how == "folder" else home / "session"
        with LocalKernel(folder, settings=settings, pool=pool) as kernel:
            try:
                before = kernel.execute(read, seconds=60)
            except SandboxError as error:
                pytest.skip(str(error))
            exchanged = kernel.execute(exchange, seconds=60)
            kernel.restart()
            after = kernel.execute(read, seconds=60)

    assert exchanged.ok, exchanged.error
    assert (before.result, after.result) == ("[]", "[]")


@pytest.mark.parametrize("how", ["folder", "write", "script", "libraries", "libraries of the current folder"])
def test_that_code_may_write_what_this_program_imports_is_warned_of_once(tmp_path, monkeypatch, caplog, how):
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "x" / "site-packages").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "x" / "site-packages"))
    if how == "script":  # `python -c`, a notebook
        monkeypatch.chdir(tmp_path / "project" / "src")
        monkeypatch.syspath_prepend("")
    elif how.startswith("libraries"):
        monkeypatch.chdir(tmp_path / "project" / "src")
        named = "" if "current" in how else str(tmp_path / "project" / "src")
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{named}:/usr/lib/none")
    else:
        monkeypatch.syspath_prepend(str(tmp_path / "project" / "src"))
    write = (str(tmp_path / "project"), str(tmp_path / "x")) if how == "write" else ()
    settings = KernelSettings(fork=False, warm=0, write=write)
    with caplog.at_level(logging.WARNING, "tw_autogen.kernel"), KernelPool() as pool:
        for _ in range(2):
            LocalKernel(tmp_path / ("session" if write else "project"), settings=settings, pool=pool).close()

    assert [record.args[0] for record in caplog.records] == [str(tmp_path / "project" / "src")]
    assert "code may write here, and this program imports from it" in caplog.text


LATE = """
import sys
from tw_autogen import open_session
from tw_autogen.hosts.conversable import register_plugins
from tw_autogen.kernel import KernelSettings, LocalKernel
late = {"jupyter_client.session", "httpx", "pandas", "pydantic", "anyio", "tw_autogen.role.taskweaver.api"}
late |= {f"tw_autogen.{name}" for name in ("kernel.gateway_kernel", "session.export", "hosts.conversable.agent")}
print(sorted(late & set(sys.modules)))
sys.path.insert(0, sys.argv[1])
LocalKernel(sys.argv[1], settings=KernelSettings(fork=False, warm=0)).close()
print(sorted(late - set(sys.modules)))
"""


def test_where_code_may_write_what_is_imported_nothing_of_this_package_is_imported_later(tmp_path):
    pytest.importorskip("autogen")
    done = subprocess.run(
        [sys.executable, "-c", LATE, tmp_path], capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path
    )

    assert done.stdout.splitlines()[-1] == "[]"
