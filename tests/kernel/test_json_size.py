"""What a kernel sends takes a bounded part of the host's memory: sizes are judged before anything is made of them."""

import json
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from jupyter_client.session import Session

from tw_autogen.kernel import LocalKernel
from tw_autogen.kernel.connection import MessageDecoder
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.host_calls import HostCalls, HostFunctions

MEGA = 1 << 20
ZONES = (
    "dateutil//etc/passwd", "dateutil/Europe/Paris", "dateutil/../../etc/passwd", "/etc/passwd", "../../etc/passwd",
    "Europe/../Europe/Paris", "tzlocal()", "tzutc()", "a" * 1_000_000, "\0", "", "No/Such_Place", "UTC+2", 7,
)  # fmt: skip


@pytest.fixture
def codec(tmp_path):
    return Codec(HostExchange(tmp_path), max_bytes=32 * MEGA)


def forged(tmp_path, *, header, size=0, numbers=b""):
    """Describe a table by a header of one's own, in a file of a size that takes nothing on the disk beyond it."""
    name = f"{len(list(tmp_path.iterdir()))}.table"
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (tmp_path / ".tw-exchange").mkdir(exist_ok=True)
    with open(tmp_path / ".tw-exchange" / name, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + len(numbers).to_bytes(8, "little") + text + numbers)
        file.truncate(max(size, file.tell()))
    return {"$": "DataFrame", "file": name}


def of(*columns, rows=1, index=None):
    """Describe a table's columns."""
    steps = {"kind": "range", "range": [0, rows, 1], "names": [None]}
    labels = {"kind": "range", "range": [0, len(columns), 1], "names": [None]}
    return {"rows": rows, "columns": columns, "index": index or steps, "labels": labels, "name": None, "attrs": {}}


TEXTS = {"kind": "text", "dtype": "string", "storage": "python", "values": ["a"] * (MEGA // 2)}


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (of(), 33 * MEGA),
        (of(rows=1 << 60), 0),
        (of(rows=8 * MEGA), 0),
        (of(TEXTS, rows=MEGA // 2), 0),
        (b"[" + b"{}," * MEGA + b"{}]", 0),
    ],
    ids=["a sparse file", "endless rows", "rows", "texts", "objects"],
)
def test_a_table_is_refused_by_the_memory_that_it_would_take(codec, tmp_path, header, size):
    with pytest.raises(ValueError, match="would take more than 32 MB of memory"):
        codec.unpack(forged(tmp_path, header=header, size=size))


@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_table_in_a_file_that_is_cut_is_refused(codec, tmp_path, size):
    packed = forged(tmp_path, header=of())
    with open(tmp_path / ".tw-exchange" / packed["file"], "r+b") as file:
        file.truncate(size)

    with pytest.raises(ValueError, match="a table's file has no 16 bytes"):
        codec.unpack(packed)


@pytest.mark.parametrize("zone", ZONES, ids=lambda one: repr(one)[:30])
def test_a_time_zone_that_is_no_name_or_offset_is_refused_and_no_file_is_opened(codec, tmp_path, zone):
    time = {"kind": "time", "dtype": "M8[ns]", "zone": zone, "values": {"dtype": "<i8", "start": 0, "count": 1}}
    index = {"kind": "flat", "levels": [time], "names": [None], "frequency": None}
    stamp = {"$": "Timestamp", "iso": "2020-01-01T00:00:00+00:00", "zone": zone}

    with pytest.raises(ValueError, match="no time zone that crosses"):
        codec.unpack(forged(tmp_path, header=of(time), numbers=bytes(8)))
    with pytest.raises(ValueError, match="no time zone that crosses"):
        codec.unpack(forged(tmp_path, header=of(index=index), numbers=bytes(8)))
    if zone:
        with pytest.raises(ValueError, match="no time zone that crosses"):
            codec.unpack(stamp)


@pytest.mark.parametrize("zone", ["Europe/Brussels", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC", "UTC-03:30"])
def test_time_zones_of_the_database_and_offsets_cross(codec, zone):
    stamp = pd.Timestamp("2024-07-01", tz=zone)
    table = pd.DataFrame({"t": [stamp]})

    assert codec.unpack(codec.pack(stamp)) == stamp
    pd.testing.assert_frame_equal(codec.unpack(codec.pack(table)), table)


@pytest.mark.parametrize(
    "value",
    [
        {"$": "Timestamp", "iso": "2020-01-01 dateutil//etc/passwd", "zone": None},
        {"$": "Timestamp", "iso": "now", "zone": None},
        {"$": "Timedelta", "iso": "P" + "1" * 100_000},
        {"$": "Timedelta", "iso": "1 day"},
    ],
)
def test_a_time_that_no_one_packed_is_refused(codec, value):
    with pytest.raises(ValueError, match="no time that crosses"):
        codec.unpack(value)


BOMBS = {
    "objects": "[" + "{}," * 3_000_000 + "{}]",
    "lists": "[" + "[]," * 3_000_000 + "[]]",
    "texts": "[" + '"",' * 4_000_000 + '""]',
    "numbers": "[" + "0," * 9_000_000 + "0]",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_call_is_refused_by_the_memory_that_it_would_take(codec, bomb):
    served = HostFunctions()
    served.add("take", lambda *args: len(args))
    calls = HostCalls(served, codec, lambda: None)

    answer = json.loads(calls.ask('{"id": 1, "name": "take", "kwargs": {}, "args": ' + bomb + "}"))

    assert "MB of the host's memory, of 256; pass a DataFrame" in answer["error"]


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_message_is_not_parsed_by_the_memory_that_it_would_take(bomb):
    session = Session(key=b"a key", signature_scheme="hmac-sha256")
    header = json.dumps({"msg_type": "stream"}).encode()
    text = b'{"a": ' + bomb.encode() + b"}"

    def read(*parts):
        return MessageDecoder(b"a key").read([b"<IDS|MSG>", session.sign(parts), *parts])

    assert read(header, b"{}", b"{}", text)["content"] == {}
    assert read(header, text, b"{}", b"{}") is None
    assert read(text, b"{}", b"{}", b"{}") is None


@pytest.fixture(scope="module")
def kernel():
    with LocalKernel() as kernel:
        yield kernel


def test_code_is_told_how_large_a_call_may_be(kernel):
    kernel.serve("take", lambda values: len(values))
    ran = kernel.execute("take([{} for _ in range(3_000_000)])", seconds=60)

    assert "HostCallError: take: the arguments would take about" in ran.error
    assert kernel.execute("take([0.5] * 200_000)", seconds=60).result == "200000"


FLOOD = """
import threading
from pathlib import Path
at = get_ipython().kernel
parent = at.get_parent("shell")
def flood():
    for _ in range(300):
        at.session.send(at.iopub_socket, "stream", {"name": "stdout", "text": "x" * 1_000_000}, parent=parent)
    Path("flooded").touch()
threading.Thread(target=flood).start()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_comes_between_two_cells_waits_in_the_kernel(kernel):
    kernel.execute("1", seconds=30)
    before = resident()
    kernel.execute(FLOOD, seconds=30)
    deadline = time.monotonic() + 30
    while not (kernel.folder / "flooded").exists() and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    threading.Event().wait(0.3)
    grown = resident() - before
    execution = kernel.execute("print('mine')", seconds=30)

    assert grown < 100 * MEGA
    assert execution.ok
    assert execution.stdout.endswith("mine\n")
    assert kernel.execute("6 * 7", seconds=30).result == "42"


def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


def test_a_table_of_ordinary_size_crosses(kernel):
    table = pd.DataFrame({"n": np.arange(300_000), "t": [f"text {number}" for number in range(300_000)]})
    kernel.put("table", table)

    pd.testing.assert_frame_equal(kernel.get("table"), table)
