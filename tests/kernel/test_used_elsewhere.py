"""Files of a folder that have a hard link outside of it are not written by code: they are the same files there."""

import os
import sys
import tempfile
import tracemalloc

import pytest

from tw_autogen.errors import ConfigError, KernelStartError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.environment_variables import clean_environment
from tw_autogen.safe_folder import remove_folder, used_elsewhere

SECONDS = 60
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="another system's links")


@pytest.fixture
def project(tmp_path):
    """Give a project with an environment whose packages are hard links to a cache, as installers make them."""
    cache, packages = tmp_path / "cache", tmp_path / "project/env/lib/site-packages"
    cache.mkdir()
    for name in ("one/__init__.py", "one/more.py", "two/deep/__init__.py"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name.replace("/", "-")).write_text("value = 'good'\n")
        (packages / name).hardlink_to(cache / name.replace("/", "-"))
    (tmp_path / "project/data.csv").write_text("a\n1\n")
    (tmp_path / "project/twice.csv").hardlink_to(tmp_path / "project/data.csv")
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o777)
    tmp_path.parent.chmod(0o755)
    return tmp_path / "project"


def found(folder, **how):
    kept = used_elsewhere(str(folder), **{"most": 500, **how})
    for path, known in kept.items():
        assert list(known)[0] == str(folder)
        assert list(known)[-1] == path
        for one, number in known.items():
            about = os.lstat(one)
            assert (about.st_dev, about.st_ino) == number
    return sorted(os.path.relpath(one, folder) for one in kept)


def test_files_with_a_name_outside_are_found_and_those_with_two_names_inside_are_not(project):
    site = "env/lib/site-packages"

    assert found(project) == [f"{site}/one/__init__.py", f"{site}/one/more.py", f"{site}/two/deep/__init__.py"]
    assert found(project, most=2) == [f"{site}/one", f"{site}/two"]
    assert found(project, most=1) == ["env/lib/site-packages"]
    assert found(project, apart={str(project / "env")}) == []
    assert found(project / "missing") == []


def test_what_can_not_be_kept_by_few_folders_is_too_much(project):
    for number in range(3):
        (project / f"{number}.csv").hardlink_to(project.parent / "cache/one-more.py")
    with pytest.raises(OverflowError, match="more than 2 files with another name outside of it"):
        found(project, most=2)


def test_a_folder_of_too_many_files_is_looked_through_no_further(project, monkeypatch):
    monkeypatch.setattr(sys.modules["tw_autogen.safe_folder.used_elsewhere"], "_MAX_ENTRIES", 3)
    with pytest.raises(OverflowError, match="more files and folders than can be looked through"):
        found(project)


def test_no_folder_stands_for_its_files_if_something_apart_lies_in_it(project):
    site = project / "env/lib/site-packages"
    with pytest.raises(OverflowError, match="more than 2 files"):
        found(project, most=2, apart={str(site / "one/sub"), str(site / "two/other")})


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root lists every folder")
def test_a_folder_that_can_not_be_listed_is_not_known_and_comes_itself(project):
    for name in ("env/lib/closed", "open/er", "closed"):
        (project / name).mkdir(parents=True)
    for name in ("env/lib/closed", "closed"):
        (project / name).chmod(0o300)

    assert {"env/lib/closed", "closed"} <= set(found(project))


def test_a_folder_that_was_exchanged_is_refused(project):
    with pytest.raises(PermissionError, match="another folder"):
        found(project, known=(1, 1))


def settings_of(project, level, how):
    return KernelSettings(sandbox=level, warm=0, write=(str(project),) if how == "write" else ())


def run(kernel, code="1"):
    try:
        return kernel.execute(code, seconds=SECONDS)
    except SandboxError as error:
        pytest.skip(str(error))


linux = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")


@linux
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
@pytest.mark.parametrize("how", ["folder", "write"])
def test_code_writes_to_no_file_that_is_another_programs_too(project, tmp_path, level, how):
    site = project / "env/lib/site-packages"
    folder = project if how == "folder" else tmp_path / "session"
    with LocalKernel(folder, settings=settings_of(project, level, how)) as kernel:
        for name in ("one/__init__.py", "two/deep/__init__.py"):
            assert "Read-only file system" in run(kernel, f"open({str(site / name)!r}, 'a').write('evil')").error
            assert not run(kernel, f"import os\nos.unlink({str(site / name)!r})").ok
        written = f"open({str(project / 'twice.csv')!r}, 'a').write('2')\nopen({str(project / 'new')!r}, 'w').close()"
        assert run(kernel, written).ok
    assert {path.read_text() for path in (tmp_path / "cache").iterdir()} == {"value = 'good'\n"}
    assert (project / "data.csv").read_text() == "a\n1\n2"


@linux
@pytest.mark.parametrize("how", ["folder", "write"])
def test_where_a_part_of_a_folder_can_not_be_kept_read_only_no_code_is_run_in_one_with_such_files(
    project, tmp_path, how
):
    folder = project if how == "folder" else tmp_path / "session"
    with (
        LocalKernel(folder, settings=settings_of(project, "landlock", how)) as kernel,
        pytest.raises((KernelStartError, ConfigError), match=r"(?i)landlock.*one/|one/.*landlock"),
    ):
        run(kernel)


@linux
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
@pytest.mark.parametrize("hook", ["Makefile", ".git/config"])
def test_a_hook_is_not_written_by_the_second_name_that_code_gave_it_before(tmp_path, level, hook):
    granted, other = tmp_path / "w", tmp_path / "w/notes.csv"
    granted.mkdir()
    for parent in (granted, *granted.parents[:2]):
        parent.chmod(0o777 if parent == granted else 0o755)
    settings = KernelSettings(sandbox=level, warm=0, write=(str(granted),))
    make = f"import os\nos.makedirs(os.path.dirname({str(granted / hook)!r}), exist_ok=True)\n"
    make += f"open({str(granted / hook)!r}, 'w').write('good')\nos.link({str(granted / hook)!r}, {str(other)!r})"
    with LocalKernel(tmp_path / "one", settings=settings) as kernel:
        assert run(kernel, make).ok
    with LocalKernel(tmp_path / "two", settings=settings) as kernel:
        assert "stays read-only" in run(kernel, f"open({str(other)!r}, 'w').write('evil')").error
    assert (granted / hook).read_text() == "good"


@linux
def test_semaphores_can_be_made_which_the_system_makes_by_hard_links(tmp_path):
    with LocalKernel(tmp_path) as kernel:
        assert run(kernel, "import multiprocessing\nmultiprocessing.Lock()\nmultiprocessing.Queue()").ok


@pytest.fixture
def own_python(tmp_path):
    """Give a project with Python environments of it, of which none is the kernel's."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    for marker in (".venv/pyvenv.cfg", "odd name/pyvenv.cfg", "sub/conda/conda-meta/history"):
        path = tmp_path / "project" / marker
        path.parent.mkdir(parents=True)
        path.write_text("")
        home = tmp_path / "project" / (marker.removesuffix("/pyvenv.cfg").removesuffix("/conda-meta/history"))
        (home / "lib/python3/site-packages").mkdir(parents=True)
        (home / "lib/python3/site-packages/x.py").write_text("good")
    (tmp_path / "project/lib").mkdir()
    for one in (tmp_path / "project").rglob("*"):
        one.chmod(0o777)
    (tmp_path / "project").chmod(0o777)
    return tmp_path / "project"


def test_environments_are_found_whole_and_of_one_in_the_folder_itself_what_is_its_own(own_python):
    assert found(own_python) == [".venv", "odd name", "sub/conda"]
    (own_python / "pyvenv.cfg").write_text("")
    (own_python / "lib64").symlink_to("lib")
    for name in ("src", "share", "etc"):
        (own_python / name).mkdir()

    assert found(own_python) == [".venv", "etc", "lib", "odd name", "pyvenv.cfg", "share", "sub/conda"]


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is of Linux")
@pytest.mark.parametrize("grant", ["own", "write"])
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
def test_code_writes_to_no_environment_of_a_project_also_if_it_is_not_the_kernels(own_python, tmp_path, level, grant):
    (tmp_path / "k").mkdir()
    settings = KernelSettings(sandbox=level, warm=0, write=(str(own_python),) if grant == "write" else ())
    code = f"""
import os
said = []
for name in (".venv", "odd name", "sub/conda", "lib"):
    try:
        open(os.path.join({str(own_python)!r}, name, "evil.pth"), "w").close()
        said.append(name)
    except OSError as error:
        pass
said"""
    said = ""
    try:
        with LocalKernel(own_python if grant == "own" else tmp_path / "k", settings=settings) as kernel:
            said = kernel.execute(code, seconds=SECONDS).result or ""
    except SandboxError as error:
        pytest.skip(str(error))
    except (ConfigError, KernelStartError) as error:
        said = str(error)

    assert ("can't keep" if level == "landlock" else "['lib']") in said


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is of Linux")
@pytest.mark.parametrize("variable", ["", "PATH", "LD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX", "MPLCONFIGDIR"])
def test_what_this_programs_processes_load_is_kept_wherever_it_lies(own_python, monkeypatch, variable):
    place = own_python / "vendored/site-packages"
    place.mkdir(parents=True)
    place.chmod(0o777)
    if variable:
        before = os.environ.get(variable)
        monkeypatch.setenv(variable, f"{place}{os.pathsep}{before}" if before else str(place))
    else:
        monkeypatch.setattr(sys, "path", [*sys.path, str(place)])
    with LocalKernel(own_python, settings=KernelSettings(sandbox="namespaces", warm=0)) as kernel:
        ran = kernel.execute(f"open({str(place / 'evil.pth')!r}, 'w')", seconds=SECONDS)
    assert "Read-only file system" in ran.error


@linux
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
@pytest.mark.parametrize("place", ["py/bin/python3", "python3"])
def test_code_can_not_change_what_the_next_kernel_starts_as(own_python, level, place):
    python = _python_at(own_python / place)
    settings = KernelSettings(sandbox=level, warm=0, python=str(python))
    with LocalKernel(own_python, settings=settings) as kernel:
        changed = run(kernel, f"open({str(python)!r}, 'a')")
        added = run(kernel, f"open({str(python.parent.parent / 'pyvenv.cfg')!r}, 'w')")
    assert "Read-only file system" in changed.error
    assert added.ok or "Error" in added.error
    assert not (python.parent.parent / "pyvenv.cfg").exists()  # of a private /tmp it may be one


@linux
def test_no_code_runs_where_it_may_write_to_the_interpreters_own_folder(own_python):
    python = _python_at(own_python / "bin/python3")
    settings = KernelSettings(sandbox="namespaces", warm=0, python=str(python))
    with (
        LocalKernel(own_python, settings=settings) as kernel,
        pytest.raises(KernelStartError, match=r"kernel.python: code may write to the folder of .*name an interpreter"),
    ):
        run(kernel, "1")


def _python_at(path):
    """Make a script that starts Python, in a folder with something of nobody's beside it."""
    path.parent.mkdir(exist_ok=True, parents=True)
    (path.parent.parent / "LICENSE.txt").touch()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o777)
    path.parent.chmod(0o777)
    return path


@linux
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
def test_code_can_not_write_where_this_program_keeps_caches(own_python, monkeypatch, level):
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_python / "cache"))
    with LocalKernel(own_python, settings=KernelSettings(sandbox=level, warm=0)) as kernel:
        ran = run(kernel, f"open({str(own_python / 'cache/tw-autogen/matplotlib/fontlist-v1.json')!r}, 'w')")
    assert "Read-only file system" in ran.error


@linux
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
@pytest.mark.parametrize(
    "how",
    ["PATH", "sys.prefix", "-packages", "kernel.python", "a way through it", "TMPDIR"]
    + ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"],
)
def test_no_code_runs_where_it_could_lead_elsewhere_what_this_program_uses(
    own_python, tmp_path, monkeypatch, level, how
):
    python, link = "", own_python / "linked"
    (tmp_path / "elsewhere/site-packages").mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")
    if how in ("PATH", "a way through it"):
        (tmp_path / "way").symlink_to(link)
        place = link if how == "PATH" else tmp_path / "way"
        monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    elif how == "sys.prefix":
        monkeypatch.setattr(sys, "prefix", str(link))
    elif how == "-packages":
        monkeypatch.setattr(sys, "path", [*sys.path, str(link / "site-packages")])
    elif how != "kernel.python":
        monkeypatch.setenv(how, str(link))
        monkeypatch.setattr(tempfile, "tempdir", None)
    else:
        link.unlink()
        link.symlink_to(sys.executable)
        python = str(link)
    settings = KernelSettings(sandbox=level, warm=0, python=python or sys.executable)
    with (
        LocalKernel(own_python, settings=settings) as kernel,
        pytest.raises(
            KernelStartError, match=r"project/linked: .*, which this program uses, is reached over this link"
        ) as said,
    ):
        kernel.execute("1", seconds=SECONDS)
    assert f"name {tmp_path / 'elsewhere'} instead" in str(said.value) or how == "kernel.python"


@linux
def test_links_in_an_environment_that_stays_read_only_are_no_reason(own_python, monkeypatch):
    environment = own_python / ".venv"
    (environment / "lib64").symlink_to("lib")
    (environment / "bin").mkdir(exist_ok=True)
    (environment / "bin/python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "path", [*sys.path, str(environment / "lib64/python3/site-packages")])
    monkeypatch.setenv("PATH", f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with LocalKernel(own_python, settings=KernelSettings(warm=0)) as kernel:
        assert run(kernel).ok


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is of Linux")
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
def test_what_is_kept_in_what_is_kept_makes_nothing_between_them_writable(own_python, monkeypatch, level):
    inner = own_python / ".venv/lib/python3/site-packages"
    monkeypatch.setattr(sys, "path", [*sys.path, str(inner)])
    code = f"""
import os
said = []
for name in ("x", "lib/x", "lib/python3/x", "lib/python3/site-packages/x"):
    try:
        open(os.path.join({str(own_python / ".venv")!r}, name), "w").close()
        said.append(name)
    except OSError as error:
        pass
said"""
    with LocalKernel(own_python, settings=KernelSettings(sandbox=level, warm=0)) as kernel:
        try:
            assert kernel.execute(code, seconds=SECONDS).result == "[]"
        except SandboxError as error:
            pytest.skip(str(error))


def test_folders_that_are_missing_are_searched_by_none_of_our_processes(tmp_path):
    host = dict.fromkeys(("PATH", "LD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX"), f"{tmp_path}{os.pathsep}{tmp_path}/later")

    assert clean_environment({**host, "PYTHONHOME": str(tmp_path / "later")}).items() >= {
        (name, str(tmp_path)) for name in host
    }
    assert "PYTHONHOME" not in clean_environment({"PYTHONHOME": str(tmp_path / "later")})


def test_a_chain_of_thousands_of_folders_takes_little(tmp_path):
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d" * 255, dir_fd=at)
        inner = os.open("d" * 255, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    tracemalloc.start()
    try:
        assert found(tmp_path) == ["d" * 255]  # what lies too deep is not known
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
        remove_folder(tmp_path)
