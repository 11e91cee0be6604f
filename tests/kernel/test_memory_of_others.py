"""What code finds in its own memory: nothing that was named for the code of another session."""

import sys

import pytest

from tw_autogen.kernel import KernelSettings, LocalKernel

SECRET = "canary-" + "7f3a9c" * 4
FIND = """
import ctypes, re
wanted, found = bytes(reversed({reversed!r})), []
with open("/proc/self/maps") as maps:
    places = [re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line) for line in maps if "[v" not in line]
for begin, end in ((int(one[1], 16), int(one[2], 16)) for one in places if one):
    text = ctypes.string_at(begin, end - begin)
    found += [text[one.start() - 20 : one.start()] for one in re.finditer(re.escape(wanted), text)]
    del text
[one for one in found if b"TOKEN" in one]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked nowhere else")
@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("name", ["MY_TOKEN", "LD_ACCESS_TOKEN"])
def test_code_finds_no_variable_of_another_sessions_code(tmp_path, monkeypatch, name, fork):
    monkeypatch.setenv(name, SECRET)
    for one in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        one.chmod(0o755)
    with LocalKernel(tmp_path / "a", settings=KernelSettings(environment=(name,), fork=fork)) as kernel:
        assert kernel.execute(f"import os\nos.environ[{name!r}]", seconds=60).result == repr(SECRET)
    look = FIND.format(reversed=SECRET.encode()[::-1])
    for number in range(2):  # one that was kept ready is among them
        with LocalKernel(tmp_path / f"b{number}", settings=KernelSettings(fork=fork)) as kernel:
            assert kernel.execute(f"import os\nos.environ.get({name!r})", seconds=60).result is None
            ran = kernel.execute(look, seconds=60)
            assert (ran.ok, ran.result) == (True, "[]"), ran.error
