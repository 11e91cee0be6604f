"""What a wall refuses says so, and names the setting; what would have failed without a wall says nothing of one."""

import os
import sys

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no wall yet")
LIMITS = {"memory_mb": 400, "file_mb": 8, "processes": 60, "open_files": 300, "disk_mb": 200}


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def kernel(request, tmp_path_factory):
    granted = tmp_path_factory.mktemp("granted")
    granted.chmod(0o755)
    for name in ("given.csv", "data/inner/deep.csv", "data/twice.csv", "old/twice.csv", ".hidden/secret.csv"):
        (granted / name).parent.mkdir(parents=True, exist_ok=True)
        (granted / name).write_text("a\n1\n")
    settings = KernelSettings(sandbox=request.param, read=(str(granted),), **LIMITS)
    with LocalKernel(settings=settings) as kernel:
        try:
            kernel.execute("1", seconds=60)
        except SandboxError as error:
            pytest.skip(str(error))
        kernel.level, kernel.given = request.param, granted
        yield kernel


def last_line(kernel, code):
    execution = kernel.execute(code, seconds=60)
    assert not execution.ok
    assert not execution.state_lost, execution.error
    return execution.error.splitlines()[-1]


NETWORK = {
    "socket": "import socket\nsocket.socket()",
    "name": "import socket\nsocket.getaddrinfo('example.org', 80)",
    "urlopen": "import urllib.request\nurllib.request.urlopen('http://example.org')",
    "pandas": "import pandas as pd\npd.read_csv('http://example.org/x.csv')",
    "asyncio": "import asyncio\nawait asyncio.open_connection('127.0.0.1', 80)",
    "as a cause": "import socket\ntry:\n    socket.socket()\nexcept OSError as error:\n"
    "    raise ValueError('no data') from error",
}


@pytest.mark.parametrize("code", NETWORK.values(), ids=NETWORK.keys())
def test_the_network_names_its_setting(kernel, code):
    assert last_line(kernel, code).startswith("The sandbox allows no network; kernel.allow_network=True would")


LINKS = {
    "os": "import os\nos.symlink('a', 'b')",
    "pathlib": "import pathlib\npathlib.Path('b').symlink_to('a')",
    "a copied tree": "import os, shutil\nshutil.copytree('/usr/share/zoneinfo/Etc', 'b', symlinks=True)",
    "as a cause": "import os\ntry:\n    os.symlink('a', 'b')\nexcept OSError as error:\n"
    "    raise ValueError('no cache') from error",
}


@pytest.mark.parametrize("code", LINKS.values(), ids=LINKS.keys())
def test_a_link_names_its_setting_and_what_does_without(kernel, code):
    assert last_line(kernel, code).startswith("The sandbox lets code make no symbolic links: copy the file (")
    assert kernel.execute("import os\nos.path.islink('b') or os.path.isfile('b')", seconds=60).result == "False"


def test_with_links_allowed_they_are_made(tmp_path):
    settings = KernelSettings(allow_symlinks=True)
    with LocalKernel(tmp_path, settings=settings) as kernel:
        assert kernel.execute("import os\nos.symlink('a', 'b')\nos.readlink('b')", seconds=60).result == "'a'"


@pytest.mark.parametrize("read", ["open('x.csv').read()", "__import__('pandas').read_csv('x.csv')"])
def test_text_that_is_no_utf_8_is_named_with_an_encoding_that_reads_it(kernel, read):
    code = f"open('x.csv', 'wb').write('Ort;Zahl\\nKöln;3\\n'.encode('cp1252'))\n{read}"

    assert last_line(kernel, code) == "This text is not UTF-8; encoding='cp1252' reads it."


@pytest.mark.parametrize(
    "content", ["b'\\x1f\\x8b\\x08\\x00\\x99'", "b'\\x89PNG\\r\\n\\x1a\\n\\x00\\x00'"], ids=["gzip", "png"]
)
def test_what_is_no_text_is_offered_no_encoding(kernel, content):
    assert "reads it" not in last_line(kernel, f"open('y.csv', 'wb').write({content})\nopen('y.csv').read()")


@pytest.mark.parametrize("code", ["open('given.csv')", "import pandas as pd\npd.read_csv('./data/given.csv')"])
def test_a_file_that_lies_in_a_granted_folder_is_named_with_its_path(kernel, code):
    assert last_line(kernel, code) == f"given.csv is not in the working folder; it is '{kernel.given}/given.csv'."


@pytest.mark.parametrize(
    ("wanted", "said"),
    {
        "a bare name": ("deep.csv", "deep.csv is not in the working folder; it is '{0}/data/inner/deep.csv'."),
        "half a path": ("inner/deep.csv", "deep.csv is not in the working folder; it is '{0}/data/inner/deep.csv'."),
        "a wrong folder": ("{0}/deep.csv", "deep.csv is not in {0}; it is '{0}/data/inner/deep.csv'."),
        "two of a name": (
            "twice.csv",
            "twice.csv is not in the working folder; there are '{0}/data/twice.csv', '{0}/old/twice.csv'.",
        ),
    }.values(),
)
def test_a_file_that_lies_deeper_in_a_granted_folder_is_named_with_its_path(kernel, wanted, said):
    code = f"import pandas as pd\npd.read_csv({wanted.format(kernel.given)!r})"

    assert last_line(kernel, code) == said.format(kernel.given)


def test_without_a_wall_a_file_of_a_granted_folder_is_named_too(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "given.csv").write_text("a\n1\n")
    settings = KernelSettings(sandbox="off", read=(str(tmp_path / "mine"),))
    with LocalKernel(tmp_path / "kernel", settings=settings) as kernel:
        line = last_line(kernel, "open('given.csv')")
        network = last_line(kernel, "raise OSError(101, 'Network is unreachable')")

    assert line == f"given.csv is not in the working folder; it is '{tmp_path}/mine/given.csv'."
    assert "sandbox" not in network


def test_a_hidden_file_of_a_granted_folder_is_not_named(kernel):
    assert last_line(kernel, "open('secret.csv')").startswith("FileNotFoundError")


def test_a_file_that_lies_nowhere_has_no_hint(kernel):
    assert last_line(kernel, "open('nosuch.csv')").startswith("FileNotFoundError")


def test_a_file_outside_names_what_would_show_it(kernel, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "sales.csv").write_text("a\n1\n")
    file = str(tmp_path / "sales.csv")

    line = last_line(kernel, f"import pandas as pd\npd.read_csv({file!r})")

    if kernel.level == "namespaces":  # the folder for temporary files is another one there
        assert line.startswith("The sandbox gives code an empty /tmp of its own; kernel.read=")
    else:
        assert f"kernel.read=[{file!r}] would show it" in line


def test_a_folder_outside_names_what_would_show_it_and_what_is_shown(kernel):
    line = last_line(kernel, "import os\nos.listdir('/home')")

    assert line.startswith(f"The sandbox shows code only the working folder, {kernel.given} and the system")
    assert "kernel.read=['/home'] would show it, kernel.write=['/home'] would let code write there" in line


WRITES = {
    "new file": "open('/usr/share/tw-new.txt', 'w')",
    "folder": "import os\nos.makedirs('/usr/share/tw-new')",
    "table": "import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('/usr/share/tw-new.csv')",
}


@pytest.mark.parametrize("code", WRITES.values(), ids=WRITES.keys())
def test_writing_where_only_reading_is_allowed_names_its_setting(kernel, code):
    line = last_line(kernel, code)

    assert line.startswith("The sandbox lets code write only in the working folder")
    assert line.endswith("kernel.write=['/usr/share'] would let it write there.")


def test_a_granted_folder_can_be_read_and_names_what_would_let_code_write_there(kernel):
    assert kernel.execute(f"open({str(kernel.given / 'given.csv')!r}).read()", seconds=60).result == repr("a\n1\n")

    line = last_line(kernel, f"open({str(kernel.given / 'new.csv')!r}, 'w')")

    assert line.endswith(f"kernel.write=[{str(kernel.given)!r}] would let it write there.")


AMOUNTS = {
    "memory": ("x = bytearray(1 << 30)", "400 MB of memory; kernel.memory_mb"),
    "array": ("import numpy as np\nx = np.ones(1 << 28)", "400 MB of memory; kernel.memory_mb"),
    "threads": (
        "import threading\nend = threading.Event()\nthreading.stack_size(64 << 10)\ntry:\n"  # so that memory lasts
        "    for _ in range(5000): threading.Thread(target=end.wait).start()\n"
        "finally:\n    end.set(), threading.stack_size(0)",
        "60 processes and threads; kernel.processes",
    ),
    "processes": (
        "import subprocess\nmade = []\ntry:\n    for _ in range(100): made.append(subprocess.Popen(['sleep', '20']))\n"
        "finally:\n    for one in made:\n        one.kill(); one.wait()",
        "60 processes and threads; kernel.processes",
    ),
    "file": (
        "with open('large', 'wb') as file:\n    file.write(bytes(9 << 20))",
        "files of 8 MB at most; kernel.file_mb",
    ),
    "open files": (
        "made = []\ntry:\n    for _ in range(400): made.append(open('/dev/null'))\nfinally:\n    made.clear()",
        "300 open files; close some; kernel.open_files",
    ),
}


@pytest.mark.parametrize(("code", "words"), AMOUNTS.values(), ids=AMOUNTS.keys())
def test_an_amount_that_is_used_up_names_its_setting(kernel, code, words):
    assert last_line(kernel, code).startswith(f"The sandbox allows {words} sets how")


def test_a_thread_for_whose_stack_no_memory_is_left_names_memory(kernel):
    line = last_line(kernel, "import threading\nthreading.stack_size(1 << 30)\nthreading.Thread(target=print).start()")
    assert kernel.execute("threading.stack_size(0)", seconds=60).ok

    assert line.startswith("The sandbox allows 400 MB of memory; kernel.memory_mb")


ORDINARY = {
    "missing": "open('missing.csv')",
    "missing, by its whole path": "import os\nopen(os.path.abspath('missing.csv'))",
    "missing in the system": "open('/usr/share/missing.csv')",
    "missing where reading is granted": None,
    "a folder": "open('.')",
    "nothing to read yet": "import os\nr, w = os.pipe()\nos.set_blocking(r, False)\nos.read(r, 1)",
    "a number": "1 / 0",
    "an import": "import not_there_at_all",
    "a closed port's exception": "raise ConnectionError('the plugin says so')",
}


@pytest.mark.parametrize("code", ORDINARY.values(), ids=ORDINARY.keys())
def test_an_ordinary_error_says_nothing_of_a_sandbox(kernel, code):
    execution = kernel.execute(code or f"open({str(kernel.given / 'missing.csv')!r})", seconds=60)

    assert not execution.ok
    assert "sandbox" not in execution.error


@pytest.mark.skipif(os.geteuid() == 0, reason="without a wall root may open what it likes")
def test_without_a_wall_nothing_is_said_of_one():
    with LocalKernel(settings=KernelSettings(sandbox="off")) as kernel:
        assert "sandbox" not in kernel.execute("open('/not/there.csv')", seconds=60).error


def test_with_the_network_allowed_its_errors_are_its_own():
    with LocalKernel(settings=KernelSettings(allow_network=True)) as kernel:
        execution = kernel.execute("import socket\nsocket.create_connection(('127.0.0.1', 1), timeout=5)", seconds=60)

    assert "Connection refused" in execution.error
    assert "sandbox" not in execution.error
