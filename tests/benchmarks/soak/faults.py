"""What sessions at work do and suffer: each kind as a function that runs its cells and checks what they come to."""

import contextlib
import functools
import os
import threading

import pandas as pd
import psutil

_SWALLOWS = "import time\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: pass"
_CHILDREN = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        try:
            x = b'a' * 200_000_000
        except MemoryError:
            os._exit(9)
        time.sleep(99)
print('a child ended with', os.waitstatus_to_exitcode(os.wait()[1]))"""
_STREAMS = "import sys\nsys.stdout = sys.stderr = sys.stdin = None"
_THREAD = """
import threading, time
def speak():
    for _ in range(100):
        print({token!r}, flush=True)
        time.sleep(0.2)
if sum(one.name == 'left' for one in threading.enumerate()) < 4:  # each takes some 20 MB, which the next cells need
    threading.Thread(target=speak, daemon=True).start()
    threading.Thread(target=time.sleep, args=(1e6,), name='left').start()"""


def plain(one):
    number = one.random.randrange(10**9)
    execution = one.run(f"own = {number}\nown + 1")
    one.expect(execution.result == str(number + 1), "a wrong result", execution)


def table(one):
    frame = pd.DataFrame({"a": range(2000), "b": one.name})
    one.kernel.put("frame", frame)
    execution = one.run("frame['c'] = frame.a * 2\nint(frame.c.sum())")
    one.expect(execution.result == str(2000 * 1999), "a wrong sum", execution)
    back = one.kernel.get("frame")
    one.expect(list(back.b.unique()) == [one.name], f"the table of {set(back.b)} came back")


def shown_table(one):
    word = one.token("cell")
    execution = one.run(
        f"from IPython.display import display\nimport pandas\ndisplay(pandas.DataFrame({{'{word}': [1]}}))",
        words=[word],
    )
    one.expect(execution.ok and len(execution.artifacts) == 1, "a table is one artifact", execution)
    (file,) = execution.artifacts
    one.expect(
        file.path.is_relative_to(one.kernel.folder) and word in file.path.read_text(), "not its table", execution
    )


def host_calls(one):
    words = [one.token("cell") for _ in range(4)]
    waited = "waiting = list(map(ask.submit, words))\n[one.result() for one in waiting] == list(map(ask, words))"
    execution = one.run(f"words = {words!r}\n{waited}", words=words)
    one.expect(execution.result == "True", "host calls side by side answer otherwise", execution)


def failing_host_call(one):
    execution = one.run("ask('fail')")
    one.expect(f"ValueError: {one.name} fails" in execution.error, "the failure is not told", execution)
    one.works()


def exception(one):
    word = one.token("cell")
    execution = one.run(f"raise ValueError({word!r})", words=[word])
    one.expect(execution.error.endswith(f"ValueError: {word}"), "not its exception", execution)
    one.works()


def system_exit(one):
    execution = one.run("import sys\nsys.exit(3)")
    one.expect("SystemExit: 3" in execution.error and not execution.state_lost, "sys.exit is an error", execution)
    one.works()


def syntax_error(one):
    execution = one.run("a = = 1", says=False)
    one.expect("SyntaxError" in execution.error, "a syntax error is told", execution)
    one.works()


def interrupted(one):
    stop = one.later(one.random.uniform(0.0, 0.5), lambda: one.kernel.interrupt())
    execution = one.run("import time\ntime.sleep(1.5)", says=False)
    stop.join()
    one.expect(execution.ok or "by an interrupt; variables are kept" in execution.error, "not interrupted", execution)
    one.works()


def too_long(one, code):
    execution = one.run(code, seconds=0.5, says=False)
    wanted = "Stopped after 0.5 s, its time limit, by an interrupt; variables are kept."
    one.expect(execution.error.startswith(wanted) and not execution.state_lost, "not stopped in time", execution)
    one.works()


def never_ending(one, code):
    execution = one.run(code, seconds=0.5, says=False)
    one.expect("so the kernel was killed" in execution.error and execution.state_lost, "not killed", execution)
    one.works(kept=False)


def dies(one, code, how):
    execution = one.run(code, says=False)
    wanted = f"The kernel died while this cell ran: {how}"
    one.expect(execution.error.startswith(wanted) and execution.state_lost, "its death is not told", execution)
    one.works(kept=False)


def killed_at_work(one):
    seen = threading.Event()
    kill = threading.Thread(target=lambda: seen.wait(60) and one.kill())
    kill.start()
    # What it hears of first may be a thread that was left behind.
    execution = one.run("import time\ntime.sleep(30)", on_output=lambda *_: seen.set(), says=False)
    kill.join()
    told = "The kernel died while this cell ran: killed by SIGKILL" in execution.error
    one.expect(told and execution.state_lost, "kill -9 is not told", execution)
    one.works(kept=False)


def killed_between(one):
    pid = one.kernel.pid
    one.kill()
    execution = one.run("'not run'", says=False)
    # The host may hear of it when the cell is on its way already.
    told = any(
        f"The kernel died {when}: killed by SIGKILL" in execution.error
        for when in ("between two cells", "while this cell ran")
    )
    one.expect(told and execution.state_lost and one.kernel.pid != pid, "kill -9 between cells is not told", execution)
    one.works(kept=False)


def server_killed(one):
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if " many " in " ".join(process.cmdline()):
                process.kill()
    one.works()
    opened_anew(one)


def memory(one, code):
    execution = one.run(code)
    one.expect("MemoryError\nThe sandbox allows 600 MB" in execution.error, "no MemoryError", execution)
    one.works()
    one.run("x = None")  # or whatever comes next would have none left


def memory_together(one):
    execution = one.run(_CHILDREN, seconds=30)
    if "a child ended with 9" in execution.stdout:  # the kernel had much already, so a child met the limit by itself
        one.kernel.restart()
    else:
        one.expect("of 600 (kernel.memory_mb)" in execution.error, "the limit is not told", execution)
    one.works(kept=False)


def large_output(one, code):
    last = one.token("cell")
    execution = one.run(f"{code}\nprint({last!r})", words=[last])
    one.expect(execution.ok and last in execution.stdout[-1000:], "its end was lost", execution)
    one.expect(len(execution.stdout) < 110_000, f"{len(execution.stdout)} characters were kept")
    one.works()


def large_repr(one):
    execution = one.run("'x' * 10_000_000")
    one.expect(execution.ok and len(execution.result) < 21_000, "a long text is cut", execution)
    one.works()


def thread_left(one):
    execution = one.run(_THREAD.format(token=one.token("thread")))
    one.expect(execution.ok, "a thread could not be started", execution)
    one.works()


def process_left(one):
    code = "import subprocess\nleft = subprocess.Popen(['sleep', '98765'], start_new_session=True)\nleft.poll()"
    execution = one.run(code)
    one.expect(execution.ok, "a process could not be started", execution)
    one.works()


def names_broken(one):
    back = f"os.chdir({str(one.kernel.folder)!r})"
    broken, mended = one.random.choice(
        [
            ("print = str = None", "del print, str"),
            ("del double", ""),
            ("import os\nos.chdir('/')", back),
            (_STREAMS, ""),
        ]
    )
    for code in (broken, mended):
        execution = one.run(code, bare=True)
        one.expect(execution.ok, "it failed", execution)
    one.works()


def reset(one):
    execution = one.run("%reset -f")
    one.expect(execution.ok, "no reset", execution)
    one.works(kept=False)


def two_threads(one):
    gone_wrong = []

    def use():
        try:
            for _ in range(3):
                number = one.random.randrange(10**9)
                execution = one.run(f"import time\ntime.sleep(0.01)\n{number}")
                one.expect(execution.result == str(number), "another thread's result", execution)
        except Exception as error:  # noqa: BLE001 - told by the session's own thread
            gone_wrong.append(error)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if gone_wrong:
        raise gone_wrong[0]


def restarted(one):
    one.kernel.restart()
    one.works(kept=False)


def opened_anew(one):
    one.close()
    one.open()
    one.works()


def tidied(one):
    folder = one.kernel.folder
    execution = one.run(
        "from pathlib import Path\nPath('a-file.txt').write_text('x' * 1000)\nlen(list(Path().iterdir())) > 0"
    )
    one.expect(execution.result == "True" and os.path.exists(folder / "a-file.txt"), "no file", execution)


_of = functools.partial

FAULTS = {
    "a result": (30, plain),
    "a table there and back": (6, table),
    "a table shown": (3, shown_table),
    "a file": (3, tidied),
    "host calls side by side": (6, host_calls),
    "two threads at once": (2, two_threads),
    "a host call that fails": (3, failing_host_call),
    "an exception": (6, exception),
    "a syntax error": (2, syntax_error),
    "sys.exit()": (3, system_exit),
    "an interrupt": (5, interrupted),
    "a silent loop": (2, _of(too_long, code="while True: pass")),
    "a sleep": (2, _of(too_long, code="import time\ntime.sleep(1e9)")),
    "an await": (1, _of(too_long, code="import asyncio\nawait asyncio.sleep(1e9)")),
    "a loop that swallows interrupts": (1, _of(never_ending, code=_SWALLOWS)),
    "C code that lets nothing run": (1, _of(never_ending, code="sum(iter(int, 1))")),
    "os._exit(3)": (1, _of(dies, code="import os\nos._exit(3)", how="exit code 3")),
    "a crash": (1, _of(dies, code="import ctypes\nctypes.string_at(0)", how="killed by SIGSEGV")),
    "kill -9 at work": (2, killed_at_work),
    "kill -9 between cells": (2, killed_between),
    "kill -9 of the fork server": (0.05, server_killed),
    "memory at once": (2, _of(memory, code="x = bytearray(10 ** 11)")),
    "memory bit by bit": (1, _of(memory, code="x = []\nwhile True: x.append(bytearray(10_000_000))")),
    "memory of children": (0.5, memory_together),
    "10 MB printed": (2, _of(large_output, code="print('x' * 10_000_000)")),
    "20 000 lines printed": (1, _of(large_output, code="for number in range(20_000): print(number)")),
    "a repr of 10 MB": (1, large_repr),
    "a thread left behind": (2, thread_left),
    "a process left behind": (2, process_left),
    "print, cwd, plugin broken": (2, names_broken),
    "%reset": (1, reset),
    "restart()": (1, restarted),
    "a new session": (3, opened_anew),
}
"""How often each happens, and what it is."""


def drawn(random):
    """Draw a kind."""
    (name,) = random.choices(list(FAULTS), [weight for weight, _ in FAULTS.values()])
    return name
