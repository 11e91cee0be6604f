"""`pip install` in a cell, however it is written, at each of the three settings; pip is real, the index a folder."""

import ast
import base64
import functools
import gc
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import psutil
import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel, package_installer
from tw_autogen.kernel.package_installer import Installer
from tw_autogen.safe_folder import HeldFolder

WAYS = {
    "magic": "%pip install {}",
    "shell": "!pip install -q {}  # a comment",
    "shell, python": "!python -m pip install {}",
    "shell, quietly": "!pip install {} -q > /dev/null 2>&1",
    "shell, last lines": "!pip install {} 2>&1 | grep -v warning | tail -1",
    "shell, kept": "said = !pip3 install {}",
    "subprocess": "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', '{}'], check=True)",
    "subprocess, text": "import subprocess\nsubprocess.check_call('pip install {}', shell=True)",
    "os.system": "import os\nassert os.system('pip install {}') == 0",
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Give a folder with two wheels, one of which needs the other."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "tw_lemon", "taste = 'sour'\n")
    make_wheel(folder, "tw_grog", "import tw_lemon\ntaste = tw_lemon.taste + ' and strong'\n", needs="tw-lemon")
    return folder


def make_wheel(folder, name, source, *, version="1.0", needs="", path=""):
    info = f"{name}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (f"Requires-Dist: {needs}\n" if needs else "")
    files = {
        path or f"{name}.py": source,
        f"{info}/METADATA": meta,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}\n")
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", "".join(lines) + f"{info}/RECORD,,\n")


@pytest.fixture
def index(wheels, monkeypatch):
    """Let pip, in the host's environment, know that folder and nothing else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))


@pytest.fixture(scope="module")
def refusing():
    with LocalKernel() as kernel:
        yield kernel


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_never_is_refused_in_words_that_name_the_setting(refusing, way):
    execution = refusing.execute(way.format("tw-grog"), seconds=60)

    assert not execution.ok
    assert "nothing can be installed here, because kernel.install is 'never'" in execution.error


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_allowed_packages_are_there_in_the_same_cell_with_what_they_need(way):
    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        ran = kernel.execute(way.format("tw-grog") + "\nimport tw_grog\ntw_grog.taste", seconds=120)
        after = kernel.execute("import tw_grog\ntw_grog.taste", seconds=60)
        kernel.restart()
        fresh = kernel.execute("import tw_grog\ntw_grog.taste", seconds=60)
        packages = kernel._installer.folder
        made = (packages / "tw_grog.py").is_file()

    assert ran.ok, ran.error
    assert (after.result, fresh.result, made) == ("'sour and strong'", "'sour and strong'", True)
    assert not packages.exists()


def test_a_package_that_the_environment_has_in_another_version_is_named(tmp_path, monkeypatch):
    make_wheel(tmp_path, "iniconfig", "", version="0.0.1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        execution = kernel.execute("%pip install iniconfig==0.0.1", seconds=120)

    there = f"iniconfig {metadata.version('iniconfig')} of the environment stays what is imported"
    assert execution.stdout.startswith(f"Installed iniconfig==0.0.1.\n{there}"), execution.error


def test_packages_of_one_namespace_stay_and_an_older_version_goes_whole(tmp_path, monkeypatch):
    make_wheel(tmp_path, "tw_tea", "", path="tw_drinks/tea/leaf.py")
    make_wheel(tmp_path, "tw_tea", "", version="2.0", path="tw_drinks/tea/bag.py")
    make_wheel(tmp_path, "tw_coffee", "", path="tw_drinks/coffee.py")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        for wanted in ("tw-tea==1.0", "tw-coffee", "tw-tea==2.0"):
            assert kernel.execute(f"%pip install {wanted}", seconds=120).ok
        ran = kernel.execute("import tw_drinks.coffee, tw_drinks.tea.bag\n"
                             "from importlib import metadata\nmetadata.version('tw-tea')", seconds=60)  # fmt: skip
        older = kernel.execute("import tw_drinks.tea.leaf", seconds=60)

    assert (ran.error, ran.result) == ("", "'2.0'")
    assert "No module named 'tw_drinks.tea.leaf'" in older.error


def test_a_file_that_a_wheel_wants_by_its_address_does_not_reach_code(tmp_path, monkeypatch):
    index, private = tmp_path / "index", tmp_path / "private"
    index.mkdir()
    private.mkdir()
    make_wheel(private, "tw_secret", "text = 'private'\n")
    address = (private / "tw_secret-1.0-py3-none-any.whl").as_uri()
    make_wheel(index, "tw_bait", "", needs=f"tw-secret @ {address}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))

    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        said = kernel.execute("%pip install tw_bait", seconds=60)
        there = kernel.execute("import tw_secret", seconds=60)

    assert "a package wants tw_secret from a file or an address, not from an index" in said.error
    assert not there.ok


@pytest.mark.usefixtures("index")
def test_asked_people_decide_and_see_what_is_wanted():
    asked = []

    def approve(proposal):
        asked.append((proposal.kind, proposal.text))
        return proposal.text == "tw-lemon==1.0"

    with LocalKernel(settings=KernelSettings(install="ask"), approve=approve) as kernel:
        refused = kernel.execute("%pip install tw-grog", seconds=120)
        installed = kernel.execute("%pip install 'tw-lemon == 1.0'\nimport tw_lemon\ntw_lemon.taste", seconds=120)

    assert "the User does not allow installing tw-grog" in refused.error
    assert installed.result == "'sour'", installed.error
    assert asked == [("packages", "tw-grog"), ("packages", "tw-lemon==1.0")]


def test_where_nobody_can_be_asked_it_is_refused():
    with LocalKernel(settings=KernelSettings(install="ask")) as kernel:
        execution = kernel.execute("%pip install tw-grog", seconds=60)

    assert "kernel.install is 'ask', and nobody is here to be asked" in execution.error


@pytest.mark.usefixtures("index")
def test_what_pip_says_is_told():
    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        execution = kernel.execute("%pip install tw-not-there", seconds=120)

    assert "pip could not install tw-not-there" in execution.error
    assert "No matching distribution found" in execution.error


@pytest.mark.parametrize("kind", ["setup.py", "pyproject.toml", "archive", "repository"])
def test_what_a_wheel_wants_from_an_address_is_never_built(tmp_path, monkeypatch, kind):
    source, canary = tmp_path / "evil", tmp_path / "canary"
    source.mkdir()
    spoil = f"open({str(canary)!r}, 'a').write('ran')\n"
    (source / "setup.py").write_text(f"{spoil}from setuptools import setup\nsetup(name='evil', version='1.0')\n")
    if kind == "pyproject.toml":
        (source / "backend.py").write_text(f"{spoil}def build_wheel(*a, **k): ...\n")
        build = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        (source / kind).write_text(f"{build}[project]\nname = 'evil'\nversion = '1.0'\n")
    place = source.as_uri()
    if kind == "archive":
        place = Path(shutil.make_archive(str(tmp_path / "evil-1.0"), "gztar", tmp_path, "evil")).as_uri()
    if kind == "repository":
        place = f"git+{place}".replace("///", "//localhost/")
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "1"],
        ):
            subprocess.run(["git", *words], cwd=source, check=True)
    make_wheel(tmp_path, "tw_innocent", "", needs=f"evil @ {place}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        ran = kernel.execute("%pip install tw-innocent", seconds=120)

    assert "pip starts no programs here" in ran.error, ran.error
    assert not canary.exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_nothing_is_written_through_links_of_an_archive_that_a_wheel_wants(tmp_path, monkeypatch, kind):
    canary, archive = tmp_path / "canary", tmp_path / "evil-1.0.tar.gz"
    canary.mkdir()
    (canary / "precious.txt").write_text("mine")
    link = tarfile.TarInfo("evil-1.0/out")
    link.type, link.linkname = kind, str(canary if kind == tarfile.SYMTYPE else canary / "precious.txt")
    if kind == tarfile.LNKTYPE:
        link.linkname = "../" * 30 + link.linkname
    written = tarfile.TarInfo("evil-1.0/out/precious.txt" if kind == tarfile.SYMTYPE else "evil-1.0/out")
    written.size = 5
    with tarfile.open(archive, "w:gz") as made:
        made.addfile(tarfile.TarInfo("evil-1.0/setup.py"))
        made.addfile(link)
        made.addfile(written, io.BytesIO(b"yours"))
    make_wheel(tmp_path, "tw_innocent", "", needs=f"evil @ {archive.as_uri()}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        assert "pip could not install tw-innocent" in kernel.execute("%pip install tw-innocent", seconds=120).error

    assert {path.name: path.read_text() for path in canary.iterdir()} == {"precious.txt": "mine"}


@pytest.mark.skipif(os.name != "posix", reason="the program is a script")
@pytest.mark.parametrize("provider", ["subprocess", "import"])
def test_a_password_comes_from_the_user_s_keyring_where_that_is_chosen(tmp_path, wheels, monkeypatch, provider):
    pytest.importorskip("pip", minversion="23.1", reason="older ones have no such choice")
    name = "keyring" if provider == "subprocess" else "gcloud"
    (tmp_path / name).write_text("#!/bin/sh\necho open sesame\n")
    (tmp_path / name).chmod(0o755)
    (tmp_path / "keyring.py").write_text(_KEYRING)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PIP_KEYRING_PROVIDER", provider)
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    handler = functools.partial(_Locked, folder=wheels)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://user@127.0.0.1:{server.server_port}/")
        done = Installer(KernelSettings(install="allow", python=str(python)), tmp_path / "work")(["tw-lemon"])
        server.shutdown()

    assert done == {"ok": True, "text": "Installed tw-lemon."}


@pytest.mark.usefixtures("index")
def test_packages_are_for_the_kernels_interpreter_whichever_pip_is_configured_for(monkeypatch):
    monkeypatch.setenv("PIP_PYTHON", "/usr/bin/python3")
    with LocalKernel(settings=KernelSettings(install="allow")) as kernel:
        ran = kernel.execute("%pip install tw-lemon\nimport tw_lemon\ntw_lemon.taste", seconds=120)

    assert ran.result == "'sour'", ran.error


_KEYRING = """
import subprocess

class credentials:
    SimpleCredential = None

def get_credential(service, name):
    class found:
        username, password = name or "user", subprocess.check_output(["gcloud", "token"], text=True).strip()
    return found

def get_password(service, name):
    return get_credential(service, name).password
"""


class _Locked(BaseHTTPRequestHandler):
    """An index of packages, for whoever has the password."""

    def __init__(self, *given, folder):
        self.folder = folder
        super().__init__(*given)

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = self.path.rstrip("/").rpartition("/")[2]
        if not self.headers.get("Authorization", "").endswith(base64.b64encode(b"user:open sesame").decode()):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="packages"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        links = "".join(f'<a href="/{path.name}">{path.name}</a>' for path in self.folder.glob("tw_lemon*"))
        said = (self.folder / name).read_bytes() if name.endswith(".whl") else links.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")
@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("sandbox", ["namespaces", "landlock"])
def test_code_can_not_write_where_the_host_installs(sandbox):
    with LocalKernel(settings=KernelSettings(install="allow", sandbox=sandbox, allow_symlinks=True)) as kernel:
        try:
            kernel.execute("%pip install tw-lemon", seconds=120)
        except SandboxError as error:
            pytest.skip(str(error))
        spoil = "import tw_lemon\nopen(tw_lemon.__file__, 'a').write('1')"
        execution = kernel.execute(spoil, seconds=60)
        link = "import os, tw_lemon\nos.symlink('/etc', os.path.dirname(tw_lemon.__file__) + '/tw_grog.py')"
        linked = kernel.execute(link, seconds=60)

    for one in (execution, linked):
        assert "The sandbox lets code write only in the working folder" in one.error


HARMFUL = [
    "foo===/../../evil",
    "foo===a\\b",
    "--index-url=http://localhost:1/",
    "-r requirements.txt",
    "./tw_lemon",
    "/tmp/tw_lemon-1.0-py3-none-any.whl",
    "git+https://example.org/x.git",
    "tw_lemon @ file:///tmp/tw_lemon-1.0-py3-none-any.whl",
    "https://example.org/x.whl",
    "tw_lemon; python_version > '3'",
    "tw_lemon --target=/tmp",
    "",
]


@pytest.mark.parametrize("wanted", HARMFUL)
def test_paths_addresses_options_and_conditions_are_refused_before_pip_is_started(tmp_path, wanted):
    settings = KernelSettings(install="allow", python="/there/is/no/python")

    answer = Installer(settings, tmp_path / "files")([wanted])

    assert not answer["ok"]
    assert answer["text"].startswith("only names and versions of packages can be installed")


def test_packages_lie_where_code_of_no_kernel_may_write(tmp_path):
    installer = Installer(KernelSettings(install="allow"), tmp_path / "work")
    place = Path(installer.prepare())
    assert place.is_dir()
    assert not place.is_relative_to(tmp_path)
    del installer
    gc.collect()
    assert not place.exists()


@pytest.mark.usefixtures("index")
def test_packages_of_a_folder_that_is_kept_open_stay_beside_the_kernels_over_no_link(tmp_path):
    (tmp_path / "session").mkdir()
    (tmp_path / "private" / "work.packages").mkdir(parents=True)
    with HeldFolder(tmp_path / "session"):
        installer = Installer(KernelSettings(install="allow"), tmp_path / "session" / "work")
        assert installer(["tw-lemon"]) == {"ok": True, "text": "Installed tw-lemon."}
        (tmp_path / "session").rename(tmp_path / "moved")
        (tmp_path / "session").symlink_to(tmp_path / "private")
        assert installer(["tw-grog"])["ok"]
        installer.close()

    assert sorted(path.name for path in (tmp_path / "moved" / "work.packages").glob("*.py")) == [
        "tw_grog.py",
        "tw_lemon.py",
    ]
    assert not any((tmp_path / "private" / "work.packages").iterdir())


AMONG = ("&& echo ok", "; ls", "| (sh)", "$(cat x)", "\npip install y", "& ls")


@pytest.mark.parametrize("command", [f"pip install x {more}" for more in AMONG])
def test_an_installation_among_other_commands_is_refused(refusing, command):
    execution = refusing.execute(f"import subprocess\nsubprocess.run({command!r}, shell=True)", seconds=60)

    assert "`pip install` has to be a command of its own" in execution.error


@pytest.mark.parametrize("command", ["echo 1 > out; cat out", "echo 1 2>&1 | cat", "true && echo 1", "echo 1 & wait"])
def test_what_other_commands_write_goes_where_they_say(refusing, command):
    assert refusing.execute(f"!{command}", seconds=60).stdout == "1\n"


def test_other_commands_of_pip_and_other_processes_run_as_ever(refusing):
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(40 + 2)'], capture_output=True).stdout"

    assert refusing.execute(code, seconds=60).result == r"b'42\n'"
    assert refusing.execute("said = !echo install\nsaid[0]", seconds=60).result == "'install'"


@pytest.mark.parametrize("word", ["{inner}", "$inner", "'{{}} $$HOME' {inner}"])
def test_variables_in_commands_are_filled_in_as_ever(refusing, word):
    code = f"def f():\n    inner = 'in here'\n    said = !echo {word}\n    !echo {word}\n    return said\nf()[0]"

    execution = refusing.execute(code, seconds=60)

    assert execution.result.endswith("in here'"), execution.error
    assert execution.stdout.strip() == ast.literal_eval(execution.result)


def test_a_command_s_output_and_its_number_are_there(refusing):
    execution = refusing.execute("!echo out; echo err >&2; exit 3\n_exit_code", seconds=60)

    assert (execution.stdout, execution.result) == ("out\nerr\n", "3")


WRITES = {
    "a new file": "open({0!r} + '/new', 'w').close()",
    "a file that is there": "open({0!r} + '/old', 'ab').close()",
    "by the system's call": "os.close(os.open({0!r} + '/new', os.O_WRONLY | os.O_CREAT, 0o755))",
    "a folder": "os.mkdir({0!r} + '/sub')",
    "a mode": "os.chmod({0!r} + '/old', 0o755)",
    "a removal": "os.remove({0!r} + '/old')",
    "a name": "os.rename({1!r} + '/own', {0!r} + '/new')",
    "a name taken": "os.rename({0!r} + '/old', {1!r} + '/taken')",
    "over a link": "open({1!r} + '/link/new', 'w').close()",
}


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("inside", [True, False])
def test_pip_writes_to_its_own_folders_alone(tmp_path, way, inside):
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
        (folder / "old").write_text("CANARY")
    (own / "own").write_text("x")
    (own / "link").symlink_to(own if inside else other)
    last = "threading.Thread(target=_end_with_host"
    assert last in package_installer._PIP
    program = package_installer._PIP.partition(last)[0] + WRITES[way].format(str(own if inside else other), str(own))
    environment = {**os.environ, "TW_PIP_WRITES": str(own)}
    before = sorted((path.name, path.stat().st_mode, path.read_bytes()) for path in other.iterdir())

    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode == 0) is inside
    assert inside or "PermissionError: pip writes nothing here but what it installs, and not " in done.stderr
    assert sorted((path.name, path.stat().st_mode, path.read_bytes()) for path in other.iterdir()) == before


def test_pip_ends_with_the_host_whatever_it_waits_for(tmp_path):
    asked = threading.Event()
    host = (
        "import sys\nfrom pathlib import Path\n"
        "from tw_autogen.kernel import KernelSettings\nfrom tw_autogen.kernel.package_installer import Installer\n"
        "Installer(KernelSettings(install='allow'), Path(sys.argv[1]) / 'session')(['tw-lemon'])"
    )

    class Silent(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.set()
            ended.wait(60)

        def log_message(self, *args):
            pass

    ended = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
        environment["PIP_INDEX_URL"] = f"http://127.0.0.1:{server.server_port}/simple"
        process = subprocess.Popen([sys.executable, "-c", host, str(tmp_path)], env=environment)
        try:
            assert asked.wait(60)
            pips = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait(60)
            _, alive = psutil.wait_procs(pips, timeout=10)
        finally:
            ended.set()
            server.shutdown()

    assert pips
    assert not alive
