"""What a sandbox refuses says so, and names the setting; what would have failed without it says nothing of one."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")
LIMITS = {"memory_mb": 400, "file_mb": 8, "processes": 60, "open_files": 300, "disk_mb": 200}


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def kernel(request, tmp_path_factory):
    granted = tmp_path_factory.mktemp("granted")
    granted.chmod(0o755)
    for name in ("given.csv", "data/inner/deep.csv", "data/twice.csv", "old/twice.csv", ".hidden/secret.csv"):
        (granted / name).parent.mkdir(parents=True, exist_ok=True)
        (granted / name).write_text("a\n1\n")
    for name in ("own_helpers.py", "src/own_package/__init__.py", "data/linked.csv"):
        (granted / name).parent.mkdir(parents=True, exist_ok=True)
        (granted / name).write_text("")
    outside = tmp_path_factory.mktemp("outside")
    outside.chmod(0o755)
    (outside / "linked.csv").write_text("b\n2\n")
    (granted / "big").symlink_to(outside)
    (granted / "one.csv").symlink_to(outside / "linked.csv")
    settings = KernelSettings(sandbox=request.param, read=(str(granted),), **LIMITS)
    with LocalKernel(settings=settings) as kernel:
        try:
            kernel.execute("1", seconds=60)
        except SandboxError as error:
            pytest.skip(str(error))
        kernel.level, kernel.given, kernel.outside = request.param, granted, outside
        yield kernel


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def roomy(request):
    """A kernel with memory for large libraries."""
    with LocalKernel(settings=KernelSettings(sandbox=request.param)) as kernel:
        try:
            kernel.execute("1", seconds=60)
        except SandboxError as error:
            pytest.skip(str(error))
        kernel.level = request.param
        yield kernel


@pytest.fixture
def open_folder():
    """A folder that other users may enter, too."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


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

    said = last_line(kernel, code)
    assert said.startswith("This text is not UTF-8; encoding='cp1252' reads it")
    assert said.endswith(
        "if most of the file is UTF-8, encoding_errors='replace' does." if "pandas" in read else " it."
    )


def test_text_of_utf_8_with_a_wrong_byte_is_not_offered_another_encoding(kernel):
    code = "open('x.csv', 'wb').write('Orléans été;3\\n'.encode() * 20 + b'K\\xf6ln;3\\n')\nopen('x.csv').read()"

    assert last_line(kernel, code).startswith("This text is UTF-8 but for a few bytes; errors='replace' reads it")


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


def test_without_a_sandbox_a_file_of_a_granted_folder_is_named_too(tmp_path):
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
    assert line.endswith("kernel.read=['/home'] would show it.")


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


@pytest.mark.skipif(os.geteuid() == 0, reason="without a sandbox root may open what it likes")
def test_without_a_sandbox_nothing_is_said_of_one():
    with LocalKernel(settings=KernelSettings(sandbox="off")) as kernel:
        assert "sandbox" not in kernel.execute("open('/not/there.csv')", seconds=60).error


def test_with_the_network_allowed_its_errors_are_its_own():
    with LocalKernel(settings=KernelSettings(allow_network=True)) as kernel:
        execution = kernel.execute("import socket\nsocket.create_connection(('127.0.0.1', 1), timeout=5)", seconds=60)

    assert "Connection refused" in execution.error
    assert "sandbox" not in execution.error


@pytest.mark.parametrize("name", ["settings.json", "models/m.joblib"])
@pytest.mark.parametrize("above", ["/srv/tw-project", ""], ids=["in neither home nor /tmp", "beside tests"])
def test_a_file_beside_modules_names_what_would_show_it_and_never_what_would_let_code_write(
    kernel, tmp_path, above, name
):
    above = above or str(tmp_path)
    file = f"{above}/{name}"
    if above == str(tmp_path):
        tmp_path.chmod(0o755)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    elif kernel.level == "landlock":
        pytest.skip("a missing file is missing there")

    line = last_line(kernel, f"import sys\nsys.path.append({above!r})\nopen({file!r})")
    assert kernel.execute("sys.path.pop()", seconds=60).ok

    assert f"kernel.read=[{file!r}] would show" in line
    assert "kernel.write" not in line


OVER_A_LINK = {
    "whole": "open('{0}/big/linked.csv')",
    "relative": "open('big/linked.csv')",
    "pandas": "import pandas as pd\npd.read_csv('big/linked.csv')",
    "listed": "import os\nos.listdir('{0}/big/inner' if '{1}' == 'namespaces' else '{0}/big')",
}


@pytest.mark.parametrize("code", OVER_A_LINK.values(), ids=OVER_A_LINK.keys())
def test_a_link_out_of_what_is_granted_is_named_and_no_other_file_of_that_name(kernel, code):
    line = last_line(kernel, code.format(kernel.given, kernel.level))

    said = f"{kernel.given}/big is a link to {kernel.outside}, which was not granted; kernel.read=['{kernel.outside}']"
    assert line == f"{said} would show it."


def test_a_file_that_is_such_a_link_is_named_with_what_it_leads_to(kernel):
    file = f"{kernel.outside}/linked.csv"

    assert last_line(kernel, "open('one.csv')") == (
        f"{kernel.given}/one.csv is a link to {file}, which was not granted; kernel.read=['{file}'] would show it."
    )


def test_writing_over_such_a_link_names_what_would_let_it(kernel):
    line = last_line(kernel, f"import pandas as pd\npd.DataFrame({{'a': [1]}}).to_csv('{kernel.given}/big/new.csv')")

    assert line.endswith(f"which was not granted; kernel.write=['{kernel.outside}'] would let code write there.")


HIDDEN_WRITES = {
    "open": "open({0!r}, 'w')",
    "open by keyword": "with open({0!r}, mode='wb') as file:\n    file.write(b'')",
    "pathlib": "import pathlib\npathlib.Path({0!r}).write_text('a')",
    "pandas": "import pandas as pd\npd.DataFrame({{'a': [1]}}).to_csv({0!r})",
    "numpy": "import numpy as np\nnp.savez({0!r}, a=[1])",
    "a copy": "open('own.csv', 'w').close()\nimport shutil\nshutil.copy('own.csv', {0!r})",
    "removed": "import os\nos.remove({0!r})",
}
HIDDEN_READS = {
    "open": "open({0!r})",
    "open for bytes": "open({0!r}, mode='rb').read()",
    "pathlib": "import pathlib\npathlib.Path({0!r}).read_text()",
    "pandas": "import pandas as pd\npd.read_csv({0!r})",
    "numpy": "import numpy as np\nnp.load({0!r})",
    "a copy": "import shutil\nshutil.copy({0!r}, 'own.csv')",
    "read to write": "open('own.csv', 'w').write(open({0!r}).read())",
    "a program": "import subprocess\nsubprocess.run([{0!r}])",
}


@pytest.mark.parametrize("code", HIDDEN_WRITES.values(), ids=HIDDEN_WRITES.keys())
def test_writing_where_nothing_is_shown_names_only_what_would_let_it(kernel, tmp_path, code):
    tmp_path.chmod(0o755)
    (tmp_path / "x.npz").write_text("")
    above = "/srv/tw-data" if kernel.level == "namespaces" else str(tmp_path)

    line = last_line(kernel, code.format(f"{above}/x.npz"))

    assert line.endswith(f"the system; kernel.write=[{above!r}] would let code write there.")


@pytest.mark.parametrize("code", HIDDEN_READS.values(), ids=HIDDEN_READS.keys())
def test_reading_where_nothing_is_shown_names_only_what_would_show_it(kernel, tmp_path, code):
    tmp_path.chmod(0o755)
    (tmp_path / "x.csv").write_text("")
    file = "/srv/tw-data/x.csv" if kernel.level == "namespaces" else str(tmp_path / "x.csv")

    line = last_line(kernel, code.format(file))

    assert line.endswith(f"the system; kernel.read=[{file!r}] would show it.")


TEXTS = {
    "polars": ("FileNotFoundError('No such file or directory (os error 2): {0}')", "{0}"),
    "duckdb": ("OSError('IO Error: No files found that match the pattern \"{0}\"')", "{0}"),
    "duckdb, a pattern": ("OSError('IO Error: No files found that match the pattern \"/srv/tw-data/*.csv\"')", None),
    "pyogrio": ("RuntimeError('{0}: No such file or directory')", "{0}"),
    "pyarrow": ("FileNotFoundError('{0}')", "{0}"),
    "no errno": ("FileNotFoundError(\"no workbook found at path '{0}'\")", "{0}"),
}


@pytest.mark.parametrize(("error", "shown"), TEXTS.values(), ids=TEXTS.keys())
def test_a_file_that_only_the_text_of_an_error_names_is_found_there(kernel, error, shown):
    if kernel.level == "landlock":
        pytest.skip("a missing file is missing there")
    file = "/srv/tw-data/x.csv"

    line = last_line(kernel, f"raise {error.format(file)}")

    shown = file if shown else "/srv/tw-data"
    assert line.endswith(f"the system; kernel.read=[{shown!r}] would show it.")


REFUSED_TEXTS = {
    "polars": "PermissionError('Permission denied (os error 13): {0}')",
    "polars, a folder": "ValueError('attempting to read `{0}` resulted in an error: Permission denied (os error 13)')",
    "duckdb": "OSError('IO Error: Cannot open file \"{0}\": Permission denied')",
    "pyogrio": "RuntimeError('{0}: Permission denied')",
}


@pytest.mark.parametrize("error", REFUSED_TEXTS.values(), ids=REFUSED_TEXTS.keys())
def test_a_text_that_says_refused_counts_as_refused_whatever_else_it_says(kernel, tmp_path, error):
    if kernel.level != "landlock":
        pytest.skip("what is not granted is missing there")
    tmp_path.chmod(0o755)
    (tmp_path / "x.csv").write_text("")
    file = str(tmp_path / "x.csv")

    line = last_line(kernel, f"raise {error.format(file)}")

    assert line.endswith(f"the system; kernel.read=[{file!r}] would show it.")


READERS = {
    "polars": "pl.read_csv({0!r})",
    "polars lazily": "pl.scan_csv({0!r}).collect()",
    "polars, a long path": "path = {1!r}\npl.read_csv(path)",
    "duckdb": "duckdb.read_csv({0!r})",
    "duckdb query": "duckdb.sql(\"select * from '{0}'\")",
    "pyogrio": "pyogrio.read_dataframe({0!r})",
    "pyarrow.dataset": "ds.dataset({0!r})",
    "sqlite3": "sqlite3.connect({0!r})",
    "sqlite3, a variable": "path = {0!r}\nwith sqlite3.connect(path) as base:\n    pass",
    "sqlite3, an address": "sqlite3.connect('file:{0}?mode=ro', uri=True)",
}
NAMES = {"polars": "pl", "pyarrow.dataset": "ds"}


@pytest.mark.parametrize("reader", READERS)
def test_readers_of_tables_name_what_would_show_a_file(roomy, open_folder, reader):
    module = reader.partition(",")[0].partition(" ")[0]
    pytest.importorskip(module)
    if roomy.level == "landlock" and module in ("duckdb", "pyarrow.dataset"):
        pytest.skip("opens files of the system first, or says the truth")
    long = "/".join(["x" * 40] * 4)
    (open_folder / long).mkdir(parents=True)
    for name in ("x.csv", f"{long}/x.csv"):
        (open_folder / name).write_text("a\n1\n")
    above = str(open_folder) if roomy.level == "landlock" else "/srv/tw-data"
    files = [f"{above}/x.csv", f"{above}/{long}/x.csv"]

    line = last_line(roomy, f"import {module} as {NAMES.get(module, module)}\n{READERS[reader].format(*files)}")

    wanted = files["long" in reader]
    assert line.endswith(f"the system; kernel.read=[{wanted!r}] would show it.")


@pytest.mark.parametrize(
    "code", ["import pandas as pd\npd.read_csv('~/data/x.csv')", "import os\nopen(os.path.expanduser('~/data/x.csv'))"]
)
def test_a_file_of_the_home_folder_names_what_would_show_the_users(kernel, code):
    assert last_line(kernel, code) == (
        "The sandbox gives code an empty home folder of its own; kernel.read=['~/data/x.csv'] would show the user's."
    )


LIBRARIES = {
    "style": (
        "import matplotlib.pyplot as plt\nplt.style.use('firma')",
        ".config/matplotlib/stylelib",
        "plt.style.use",
    ),
    "nltk": (
        "raise LookupError(\"Resource not found.\\n>>> nltk.download('stopwords')\\nSearched in: 'nltk_data'\")",
        "nltk_data",
        "nltk.data.path.append",
    ),
}


@pytest.mark.parametrize(("code", "folder", "use"), LIBRARIES.values(), ids=LIBRARIES)
def test_what_a_library_finds_in_the_home_folder_names_what_would_show_it_and_then_how_it_is_used(
    tmp_path, monkeypatch, code, folder, use
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "firma.mplstyle").write_text("axes.facecolor: ffeecc\n")
    with LocalKernel() as kernel:
        assert last_line(kernel, code) == (
            f"The sandbox gives code an empty home folder of its own; kernel.read=['~/{folder}'] would show what the "
            f"user has in {folder}, for `{use}`."
        )
    with LocalKernel(settings=KernelSettings(read=(str(tmp_path / folder),))) as kernel:
        path = str(tmp_path / folder) + ("/firma.mplstyle" if use == "plt.style.use" else "")
        assert last_line(kernel, code).endswith(f"; `{use}({path!r})` takes the user's.")
        if use == "plt.style.use":
            assert kernel.execute(f"{use}({path!r})", seconds=60).ok
        else:
            assert "sandbox" not in last_line(kernel, code.replace("'nltk_data'", path))


def test_a_style_of_an_older_matplotlib_is_not_looked_for_in_the_home_folder(roomy):
    line = last_line(roomy, "import matplotlib.pyplot as plt\nplt.style.use('seaborn')")

    assert "sandbox" not in line


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
@pytest.mark.parametrize("granted", ["data", "data/2026", "data/2026/x.csv"])
def test_a_granted_file_of_the_home_folder_is_named_where_it_lies(tmp_path, monkeypatch, level, granted):
    home = tmp_path / "anna"
    (home / "data" / "2026").mkdir(parents=True)
    (home / "data" / "2026" / "x.csv").write_text("a\n1\n")
    for path in (tmp_path, *home.rglob("*"), home):
        path.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    settings = KernelSettings(sandbox=level, read=(str(home / granted),))
    with LocalKernel(tmp_path / "work", settings=settings) as opened:
        try:
            line = last_line(opened, "open(__import__('os').path.expanduser('~/data/2026/x.csv'))")
        except SandboxError as error:
            pytest.skip(str(error))

    place = home / "data" / "2026" / "x.csv"
    assert line == f"The sandbox gives code an empty home folder of its own; the user's file is {str(place)!r}."


@pytest.mark.parametrize(
    ("module", "folder"), [("own_helpers", ""), ("own_package", "/src"), ("own_package.x", "/src")]
)
def test_a_module_of_a_granted_folder_is_named_with_what_lets_code_import_it(kernel, module, folder):
    folder = f"{kernel.given}{folder}"
    top = module.partition(".")[0]

    line = last_line(kernel, f"import {module}")

    assert line == f"{top} lies in {folder}: `sys.path.append({folder!r})` lets code import it."
    taken = kernel.execute(f"import sys\nsys.path.append({folder!r})\nimport {top}\nsys.path.pop()", seconds=60)
    assert taken.ok
    kernel.execute(f"del sys.modules[{top!r}]", seconds=60)


@pytest.mark.parametrize("module", ["not_there_at_all", "data", "own_helpers.deeper"])
def test_other_modules_have_no_hint(kernel, module):
    code = f"import sys\nsys.path.append({str(kernel.given)!r})\nimport own_helpers\nsys.path.pop()\nimport {module}.x"

    failed, installed = kernel.execute(code, seconds=60).error.splitlines()[-2:]
    assert failed.startswith("ModuleNotFoundError")
    assert installed.startswith("Installed are numpy, ")


@pytest.mark.parametrize(("wanted", "found"), [("../old/twice.csv", "old/twice.csv"), ("../given.csv", "given.csv")])
def test_a_relative_path_that_leaves_the_working_folder_is_looked_for_in_what_is_granted(kernel, wanted, found):
    line = last_line(kernel, f"open({wanted!r})")

    name, above = os.path.basename(wanted), os.path.dirname(wanted)
    assert line == f"{name} is not in {above}; it is '{kernel.given}/{found}'."


@pytest.mark.parametrize("wanted", ["../nosuch.csv", "../other/twice.csv"])
def test_no_path_is_made_of_a_relative_one_that_leaves_the_working_folder(kernel, wanted):
    assert last_line(kernel, f"open({wanted!r})").startswith("FileNotFoundError")


SHARED = {
    "a lock": "import multiprocessing\nmultiprocessing.Lock()",
    "a pool": "import multiprocessing\nmultiprocessing.Pool(2)",
    "an executor": "from concurrent.futures import ProcessPoolExecutor as Pool\nPool(2).submit(abs, -1).result()",
    "memory": "from multiprocessing.shared_memory import SharedMemory\nSharedMemory(create=True, size=100).unlink()",
}


@pytest.mark.parametrize("code", SHARED.values(), ids=SHARED.keys())
def test_semaphores_and_memory_that_processes_share_name_the_levels_that_have_them(roomy, code):
    execution = roomy.execute(code, seconds=60)

    if roomy.level == "landlock":
        line = execution.error.splitlines()[-1]
        assert line.startswith(
            "Processes can't share semaphores or memory at the sandbox's level landlock: use threads"
        )
    else:
        assert execution.ok, execution.error


def test_processes_that_connect_to_one_another_name_what_works(roomy):
    line = last_line(roomy, "import multiprocessing\nmanager = multiprocessing.Manager()\nmanager.dict()")

    assert line.startswith(
        "The sandbox lets processes of a cell connect to no sockets, Unix sockets included: use threads"
    )
    assert "no network;" not in line


def test_with_the_network_allowed_processes_connect_to_one_another():
    with LocalKernel(settings=KernelSettings(allow_network=True)) as kernel:
        code = "import multiprocessing\nmanager = multiprocessing.Manager()\nmanager.dict(a=1)['a']"
        assert kernel.execute(code, seconds=60).result == "1"


BROWSERS = {
    "kaleido": "class BrowserFailedError(RuntimeError): pass\nraise BrowserFailedError('The browser seemed to close')",
    "plotly": "raise RuntimeError('Kaleido requires Google Chrome; run $ plotly_get_chrome')",
}


@pytest.mark.parametrize("code", BROWSERS.values(), ids=BROWSERS.keys())
def test_a_browser_that_fails_names_what_draws_without_one(kernel, code):
    line = last_line(kernel, code)

    assert line.startswith("Browsers such as Chrome can't run in the sandbox")
    assert "matplotlib" in line
    assert "write_html" in line


HOSTILE = {
    "a huge text": "raise FileNotFoundError('/srv/x' * 3_000_000)",
    "many paths": "raise FileNotFoundError(''.join(f\"'/srv/tw{number}/x.csv' \" for number in range(200_000)))",
    "a zero byte": "error = OSError(2, 'No such file', '/srv/a')\nerror.filename = '/srv/\\0'\nraise error",
    "a long path": "raise OSError(2, 'No such file', '/srv/' + 'x/' * 100_000)",
    "attributes that raise": "class Odd(OSError):\n    @property\n    def filename(self): raise ValueError\n"
    "    errno = filename\nraise Odd",
    "a deep traceback": "import types\ntry:\n    open('/srv/x')\nexcept OSError as error:\n"
    "    end = error.__traceback__\n    for _ in range(100_000):\n"
    "        end = types.TracebackType(end, end.tb_frame, 0, 1)\n    raise error.with_traceback(end)",
    "a long line": "raise ValueError('unable to open database file', " + "'/srv/a', " * 20_000 + ")",
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_an_error_of_any_size_and_kind_takes_little_time_and_has_a_short_hint(kernel, code):
    execution = kernel.execute(code, seconds=60)

    assert not execution.ok
    assert execution.seconds < 10
    assert len(execution.error.splitlines()[-1]) < 8200
