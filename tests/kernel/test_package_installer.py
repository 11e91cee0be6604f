"""`pip install` in a cell, however it is written, at each of the three settings; pip is real, the index a folder."""

import ast
import base64
import gc
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.package_installer import Installer
from tw_autogen.safe_folder import KeptFolder

WAYS = {
    "magic": "%pip install {}",
    "shell": "!pip install -q {}  # a comment",
    "shell, python": "!python -m pip install {}",
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


def make_wheel(folder, name, source, *, version="1.0", needs=""):
    info = f"{name}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (f"Requires-Dist: {needs}\n" if needs else "")
    files = {
        f"{name}.py": source,
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


@pytest.mark.skipif(sys.platform != "linux", reason="there is no wall yet")
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
    with KeptFolder(tmp_path / "session"):
        installer = Installer(KernelSettings(install="allow"), tmp_path / "session" / "work")
        assert installer(["tw-lemon"]) == {"ok": True, "text": "Installed tw-lemon."}
        (tmp_path / "session").rename(tmp_path / "moved")
        (tmp_path / "session").symlink_to(tmp_path / "private")
        assert installer(["tw-grog"])["ok"]
        installer.close()

    assert sorted(one.name for one in (tmp_path / "moved" / "work.packages").glob("*.py")) == [
        "tw_grog.py",
        "tw_lemon.py",
    ]
    assert not any((tmp_path / "private" / "work.packages").iterdir())


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
