"""What a kernel reports of a cell is bounded by the host, whatever code has put into its messages."""

import threading

import pytest

from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.guest.checkpoint import FOLDER
from tw_autogen.kernel.guest.report_marks import SOURCE

SECONDS = 60.0
CHARS = 1000
STREAM = """
from IPython import get_ipython
kernel = get_ipython().kernel
for _ in range(20):
    content = {"name": "stdout", "text": "x" * 1_000_000}
    kernel.session.send(kernel.iopub_socket, "stream", content, parent=kernel.get_parent())
print("end")  # so that the host waits for all output
"""
REPORT = f"""
import json
from IPython import get_ipython
session = get_ipython().kernel.session
open("a.txt", "w").close()
open(".hidden", "w").close()
report = {{
    "artifacts": [["n", "txt", "a.txt", "p" * 100_000], ["h", "txt", ".hidden", ""]] * 200,
    "logs": [["info", "t", "m" * 1000]] * 10_000,
    "variables": [["v", "int", "s" * 1000]] * 10_000, "rollback": [["n" * 1000, "w"]] * 10_000,
    "error": "e" * 5_000_000,
}}
before = session.send
def send(stream, kind, content=None, *args, **named):
    if kind == "execute_reply":
        content = {{"status": "error", "payload": [{{"source": {SOURCE!r}, "report": json.dumps(report)}}]}}
        session.send = before
    return before(stream, kind, content, *args, **named)
session.send = send
"""
CHARACTERS = """
from IPython import get_ipython
kernel = get_ipython().kernel
for _ in range(20_000):
    for name, text in (("stdout", "a"), ("stderr", "b")):
        content = {"name": name, "text": text}
        kernel.session.send(kernel.iopub_socket, "stream", content, parent=kernel.get_parent())
print("end")  # as above
"""
JOURNAL = f"""
import json, os
os.remove("{FOLDER}/cells.jsonl")
with open("{FOLDER}/cells.jsonl", "w") as file:
    for _ in range(1000):
        code = "import time; open('began', 'w').close(); time.sleep(300)"
        line = {{"code": code, "seconds": 1000.0, "called": False, "variables": []}}
        print(json.dumps(line), file=file)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def short():
    with LocalKernel(settings=KernelSettings(output_chars=CHARS)) as kernel:
        yield kernel


def test_a_listener_hears_little_more_than_what_is_kept(short):
    heard = []
    ran = short.execute(STREAM, seconds=SECONDS, on_output=lambda *said: heard.append(said))

    assert ran.ok, ran.error
    assert len(ran.stdout) < CHARS + 200
    assert CHARS <= sum(len(text) for stream, text in heard if stream == "stdout") <= 2 * CHARS + 10_200


def test_single_characters_are_handed_on_together_and_nothing_of_them_is_lost():
    heard = []
    with LocalKernel() as kernel:
        ran = kernel.execute(CHARACTERS, seconds=SECONDS, on_output=lambda *said: heard.append(said))

    assert ran.ok, ran.error
    assert len(heard) < 10_000
    for stream, character, text in (("stdout", "a", ran.stdout), ("stderr", "b", ran.stderr)):
        assert "".join(piece for name, piece in heard if name == stream) == text
        assert text.removesuffix("end\n") == character * 20_000


def test_all_of_a_forged_report_is_bounded(short):
    ran = short.execute(REPORT, seconds=SECONDS)

    assert len(ran.artifacts) <= KernelSettings.max_artifacts
    assert {artifact.path.name for artifact in ran.artifacts} == {"a.txt"}
    for rows in (ran.artifacts, ran.logs, ran.variables):
        assert rows
        assert sum(len(str(row)) for row in rows) < 3 << 20
    assert len(ran.error) < 2 << 20


@pytest.mark.parametrize("way", ["interrupt", "kill"])
def test_cells_of_a_forged_journal_that_are_run_again_can_be_stopped(way):
    done = threading.Event()

    def stop(kernel):
        while not done.wait(0.05):
            if (kernel.folder / "began").exists():
                getattr(kernel, way)()
                return

    with LocalKernel(settings=KernelSettings(checkpoint_seconds=100.0)) as kernel:
        assert kernel.execute("x = 1", seconds=SECONDS).ok
        assert kernel.execute(JOURNAL, seconds=SECONDS).state_lost
        stopping = threading.Thread(target=stop, args=(kernel,))
        stopping.start()
        try:
            ran = kernel.execute("1 + 1", seconds=SECONDS)
            if not ran.ok:  # it was told first that the kernel has died
                ran = kernel.execute("1 + 1", seconds=SECONDS)
        finally:
            done.set()
            stopping.join()
    assert ran.result == "2", ran.error
