import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tw_autogen.cli.chat import Chat
from tw_autogen.cli.file_arguments import named_files
from tw_autogen.cli.options import Options
from tw_autogen.cli.signals import Terminated
from tw_autogen.cli.terminal import stdout_console
from tw_autogen.safe_folder import remove_folder
from tw_autogen.testing import codes, plans, replay_server

SECONDS = 60.0
ESCAPES = re.compile(rb"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;?]*[A-Za-z])")


FIRST = """
import sys
from tw_autogen.cli import main
sys.modules["tw_autogen.session.session"] = None  # no session can be imported
main(["--no-color"])
"""


class Screen:
    """What a program writes to its terminal, without colours and cursor, read by a thread as it comes."""

    def __init__(self, leader):
        self._leader = leader
        self._seen = b""
        self._at = 0
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        while True:
            try:
                data = os.read(self._leader, 4096)
            except OSError:  # Linux says so when the last writer has gone
                data = b""
            with self._news:
                self._seen += data
                self._news.notify_all()
            if not data:
                return

    def wait_for(self, words):
        """Wait for words that come after those that were waited for last."""
        with self._news:
            found = self._news.wait_for(lambda: words in self.text[self._at :], SECONDS)
            assert found, f"no {words!r} in {self.text[self._at :]}"
            self._at = self.text.index(words, self._at) + len(words)

    @property
    def escaped(self):
        """Whether an escape code was written."""
        return b"\x1b" in self._seen

    @property
    def text(self):
        return ESCAPES.sub(b"", self._seen).decode(errors="replace")

    def type(self, keys):
        os.write(self._leader, keys.encode(errors="surrogateescape"))

    def close(self):
        self._thread.join(SECONDS)


@pytest.fixture
def chat(command, environ, tmp_path):
    """Start a chat at a terminal of its own; give (screen, process)."""
    leader, follower = pty.openpty()
    running, screens = [], []

    def start(server, *args, editor="", pager="cat", cwd=tmp_path, term="xterm"):
        process = subprocess.Popen(
            [*command, "--base-url", server.base_url, "--no-color", *args],
            stdin=follower, stdout=follower, stderr=follower, cwd=cwd, start_new_session=True,
            env={**environ, "TERM": term, "COLUMNS": "100", "VISUAL": str(editor), "PAGER": str(pager),
                 "PROMPT_TOOLKIT_NO_CPR": "1"},  # no cursor's place
        )  # fmt: skip
        os.close(follower)
        running.append(process)
        screens.append(Screen(leader))
        return screens[0], process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait(SECONDS)
    for screen in screens:
        screen.close()
    os.close(leader)


def test_the_first_line_stands_before_what_takes_long_is_imported(environ, tmp_path):
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", FIRST]
    ran = subprocess.run(
        command, stdin=follower, stdout=follower, stderr=subprocess.PIPE, timeout=SECONDS, cwd=tmp_path, env=environ
    )
    os.close(follower)
    with os.fdopen(leader, "rb", buffering=0) as screen:
        assert screen.read(4096).decode() == "/help lists commands · Ctrl-C stops what is running\r\n"
    assert b"tw_autogen.session.session" in ran.stderr


def test_ctrl_c_stops_the_cell_keeps_variables_and_ctrl_d_leaves(chat):
    replies = [
        plans("loop"),
        codes("kept = 42\nprint('begun', flush=True)\nwhile True: pass"),
        plans("look"),
        codes("kept"),
        plans("kept is 42.", to="User"),
    ]
    with replay_server(replies) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("loop\n")
        screen.wait_for("  begun")  # the line about the cell may come before or after it
        screen.wait_for("running cell 1")
        process.send_signal(signal.SIGINT)
        screen.wait_for("stopped; variables kept")
        screen.wait_for(">")
        screen.type("look\n")
        screen.wait_for("→ 42")
        screen.wait_for("kept is 42.")
        screen.wait_for("3 model calls")
        screen.wait_for(">")
        screen.type("/info\n")
        screen.wait_for("code runs  ")
        screen.wait_for(", pid ")
        screen.wait_for("seconds ")
        screen.wait_for(">")
        screen.type("\x04")
        screen.wait_for("The session's folder: ")

        assert process.wait(SECONDS) == 0


_DEAF = """
import os
said = False
while not os.path.exists('enough'):
    try:
        if not said: print('begun', flush=True)
        said = True
        while not os.path.exists('enough'): pass
    except BaseException:
        pass
"""
"""A cell that reacts to no interrupt, and ends when there is a file `enough`."""


@pytest.mark.parametrize("refused_first", [False, True], ids=["yes", "no, and Ctrl-C once more"])
def test_a_cell_that_does_not_react_is_ended_when_the_user_says_so_and_variables_come_back(chat, refused_first):
    replies = [
        plans("begin"),
        codes("import time\ntime.sleep(1)\nkept = 42\nrunning = (one for one in [])"),
        plans("Begun.", to="User"),
        plans("loop"),
        codes(_DEAF),
        plans("look"),
        codes("kept"),
        plans("kept is 42.", to="User"),
    ]
    with replay_server(replies) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("begin\n")
        screen.wait_for("Begun.")
        screen.wait_for("\n>")
        screen.type("loop\n")
        screen.wait_for("  begun")
        process.send_signal(signal.SIGINT)
        screen.wait_for("cell 2 does not react to the interrupt. End the kernel? Variables come back from the last ")
        screen.wait_for("checkpoint. [y/N]")
        if refused_first:
            screen.type("\n")
            screen.wait_for("cell 2 goes on; Ctrl-C ends the kernel at once")
            process.send_signal(signal.SIGINT)
        else:
            screen.type("y\n")
        screen.wait_for("stopped; the kernel was ended, and variables came back: kept; lost: running")
        screen.wait_for("\n>")
        screen.type("look\n")
        screen.wait_for("→ 42")
        screen.wait_for("kept is 42.")
        screen.wait_for("\n>")
        screen.type("\x04")
        screen.wait_for("The session's folder: ")

        assert process.wait(SECONDS) == 0


def test_the_question_is_taken_back_when_the_cell_ends_by_itself(chat, tmp_path):
    with replay_server([plans("loop"), codes(f"kept = 42\n{_DEAF}")]) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("loop\n")
        screen.wait_for("  begun")
        process.send_signal(signal.SIGINT)
        screen.wait_for("[y/N]")
        (files,) = tmp_path.glob(".tw/sessions/*/files")
        (files / "enough").touch()
        screen.wait_for("stopped; variables kept")
        screen.wait_for("\n>")
        screen.type("/info\n")
        screen.wait_for("kept: int, 42")
        screen.wait_for("\n>")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0


def test_a_terminal_without_escape_codes_gets_none_and_may_send_what_is_no_text(chat, environ):
    environ["PYTHONIOENCODING"] = "utf-8:strict"  # as in a locale such as de_DE.UTF-8
    replies = [plans("look"), codes("print('seen')"), plans("It is **42**.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, term="dumb")
        screen.wait_for("\n> ")
        screen.type(b"l\xf6ok\n".decode(errors="surrogateescape"))
        screen.wait_for("It is 42.")
        screen.wait_for("\n> ")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    assert not screen.escaped


def test_ctrl_c_clears_what_is_typed_and_does_not_leave(chat):
    with replay_server([plans("still here.", to="User")]) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        for words in ("cleared", "WITHDRAWN"):
            screen.type(words)
            screen.wait_for(words)
            screen.type("\x03")
        screen.type("are you there?\n")
        screen.wait_for("still here.")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    assert "cleared" not in str(server.requests)
    assert "WITHDRAWN" not in str(server.requests)


def test_sigterm_closes_a_chat(chat):
    with replay_server([]) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        process.terminate()
        screen.wait_for("The session's folder: ")

        assert process.wait(SECONDS) == 143


def test_the_commands_do_what_help_says_and_ctrl_c_twice_leaves(chat, tmp_path):
    (tmp_path / "sales.csv").write_text("day,revenue\n1,20\n2,22\n")
    with replay_server([plans("I see it.", to="User"), plans("fresh.", to="User")]) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("/help\n")
        screen.wait_for("/reset")
        screen.type("/nosuch\n")
        screen.wait_for("there is no /nosuch")
        screen.type("/files nosuch.csv sales.csv\n")
        screen.wait_for("'nosuch.csv' does not exist")
        screen.wait_for("with the next question: sales.csv")
        screen.type("do you see it?\n")
        screen.wait_for("I see it.")
        screen.type("/info\n")
        screen.wait_for("1 question")
        screen.wait_for("code runs  local kernel")
        screen.type("/interrupt\n")
        screen.wait_for("nothing runs now")
        screen.type("/reset\n")
        screen.wait_for("a new session")
        screen.wait_for(">")
        screen.type("again\n")
        screen.wait_for("1 model call")
        screen.wait_for(">")
        process.send_signal(signal.SIGINT)
        screen.wait_for("Ctrl-C again, or Ctrl-D, to leave")
        screen.wait_for(">")
        process.send_signal(signal.SIGINT)
        screen.wait_for("The session's folder: ")

        assert process.wait(SECONDS) == 0
    assert "sales.csv: 22 bytes" in server.requests[0]["messages"][-1]["content"]
    assert "I see it." not in str(server.requests[1]["messages"])


@pytest.mark.parametrize(
    ("key", "words"), [("n\n", "the User does not allow installing tw-nothing"), ("y\n", "No matching")]
)
def test_a_request_to_install_is_asked_at_the_terminal(chat, monkeypatch, tmp_path, key, words):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    replies = [plans("install"), codes("%pip install tw-nothing"), codes("1"), plans("tried.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, "--set", "kernel.install=ask")
        screen.wait_for("\n>")
        screen.type("install it\n")
        screen.wait_for("Code wants to install tw-nothing for this session. Allow it? [y/N]")
        screen.type(key)
        screen.wait_for(words)
        screen.wait_for("tried.")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    assert "%pip install name` above its import: the User is asked" in server.requests[1]["messages"][0]["content"]


def test_ctrl_c_takes_a_question_back(chat):
    replies = [plans("install"), codes("%pip install tw-nothing"), plans("again.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, "--set", "kernel.install=ask")
        screen.wait_for("\n>")
        screen.type("install it\n")
        screen.wait_for("Allow it? [y/N]")
        process.send_signal(signal.SIGINT)
        screen.wait_for("stopped; variables kept")
        screen.wait_for(">")
        screen.type("go on\n")
        screen.wait_for("again.")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0


def test_a_talk_is_kept_as_an_example_and_as_a_lesson(chat, tmp_path):
    (tmp_path / "lessons").mkdir()
    with replay_server([plans("Hello to you.", to="User"), '{"lesson": "Greet back."}']) as server:
        screen, process = chat(server, "--set", "recall.experience=lessons")
        screen.wait_for("\n>")
        screen.type("hello\n")
        screen.wait_for("1 model call")
        screen.wait_for(">")
        screen.type("/save\n")
        screen.wait_for("name the file: /save")
        screen.type("/save examples/hello.yaml\n")
        screen.wait_for("an example, which you may edit:")
        screen.wait_for(">")
        screen.type("/learn\n")
        screen.wait_for("a lesson, which you may edit:")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0

    assert "Hello to you." in (tmp_path / "examples" / "hello.yaml").read_text(encoding="utf-8")
    (path,) = (tmp_path / "lessons").iterdir()
    assert "Greet back." in path.read_text(encoding="utf-8")


def test_a_cell_waits_for_a_person_who_refuses_it_with_a_reason_edits_it_and_lets_it_run(chat, tmp_path):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/40/41/ "$1"\n')
    editor.chmod(0o755)
    replies = [plans("count"), codes("print('drop')"), codes("print('is', 40)"), plans("done.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, "--set", "code_interpreter.approval=always", editor=editor)
        screen.wait_for("\n>")
        screen.type("count\n")
        screen.wait_for("Let this code run? [y/N/always/e to edit, or say why not]")
        screen.type("keep all rows\n")
        screen.wait_for("Let this code run?")
        screen.type("e\n")
        screen.wait_for("is 41")
        screen.wait_for("done.")
        screen.wait_for(">")
        screen.type("\x04")
        screen.wait_for("The session's folder: ")

        assert process.wait(SECONDS) == 0
    assert "did not let it run: keep all rows" in server.requests[2]["messages"][-1]["content"]


def test_lines_files_outputs_and_always_belong_to_a_chat(chat, tmp_path):
    (tmp_path / "my sales.csv").write_text("day\n1\n", encoding="utf-8")
    cell = "for number in range(1000): print('row', number)"
    replies = [plans("count"), codes(cell), plans("again"), codes(cell), plans("done.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, "--set", "code_interpreter.approval=always")
        screen.wait_for("\n>")
        screen.type('count @"my sales.csv"\x1b\r')  # Alt-Enter
        screen.type("and more\\\r")
        screen.type("of it\r")
        screen.wait_for("Let this code run?")
        screen.type("always\n")
        screen.wait_for("(960 lines are not shown)")
        screen.wait_for("all of it: /output 1")
        screen.wait_for("✓ cell 2")
        screen.wait_for("done.")
        screen.wait_for(">")
        screen.type("/output 1\r")
        screen.wait_for("row 500")
        screen.wait_for("row 999")
        screen.wait_for(">")
        screen.type("quit\r")
        screen.wait_for("The session's folder: ")

        assert process.wait(SECONDS) == 0
    request = server.requests[0]["messages"][-1]["content"]
    assert "and more\nof it" in request
    assert "my sales.csv: 6 bytes" in request


def test_a_file_that_is_refused_is_not_sent_along_again(chat, tmp_path):
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link.csv").symlink_to(tmp_path / "secret.csv")
    with replay_server([plans("Seven.", to="User")]) as server:
        screen, process = chat(server, "-C", "here")
        screen.wait_for("\n>")
        screen.type("/files here/link.csv\n")
        screen.wait_for("with the next question: here/link.csv")
        screen.type("sum it\n")
        screen.wait_for("the next question has no attached files")
        screen.type("what is 3 + 4?\n")
        screen.wait_for("Seven.")
        screen.wait_for(">")
        screen.type("\x04")

    assert len(server.requests) == 1


def test_files_of_a_chat_are_looked_up_in_the_folder_of_c_too(chat, tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("fees", "rules"):
        (tmp_path / "data" / f"{name}.csv").write_text(f"column_of_{name}\n1\n", encoding="utf-8")
    with replay_server([plans("Seven.", to="User")]) as server:
        screen, process = chat(server, "-C", "data")
        screen.wait_for("\n>")
        screen.type("/files fees.csv data rule.csv\n")
        screen.wait_for("'data' is a folder; --set kernel.read=data lets code read")
        screen.wait_for("'rule.csv' does not exist in")
        screen.wait_for("or data; did you mean 'data/rules.csv'?")
        screen.wait_for("with the next question: data/fees.csv")
        screen.type("sum @rules.csv and @nosuch.csv and @https://x.org/a.csv for @nobody\n")
        screen.wait_for("not attached: 'nosuch.csv' does not exist in")
        screen.wait_for("not attached: 'https://x.org/a.csv' is a URL; download it")
        screen.wait_for("Seven.")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    request = server.requests[0]["messages"][-1]["content"]
    assert "column_of_fees" in request
    assert "column_of_rules" in request


def test_the_tabulator_key_completes_names_with_blanks_so_that_they_are_found(chat, tmp_path):
    (tmp_path / "Übersicht 2024").mkdir()
    (tmp_path / "Übersicht 2024" / "Verkäufe März.csv").write_text("column_of_march\n1\n", encoding="utf-8")
    (tmp_path / "April (2).csv").write_text("column_of_april\n1\n", encoding="utf-8")
    (tmp_path / "May sales.csv").write_text("column_of_may\n1\n", encoding="utf-8")
    with replay_server([plans("Seven.", to="User")]) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("sum @Üb\t")
        screen.wait_for('"Übersicht 2024/')
        screen.type("Ver\t")
        screen.wait_for('März.csv"')
        screen.type(' and @"Apr\t')
        screen.wait_for('(2).csv"')
        screen.type(" and @May\\ sa\t")
        screen.wait_for("May sales")  # in the menu: of the line itself what changes is drawn
        screen.type(' and @"no (such).csv"\r')
        screen.wait_for("not attached: 'no (such).csv' does not exist")
        screen.wait_for("Seven.")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    request = server.requests[0]["messages"][-1]["content"]
    assert all(f"column_of_{month}" in request for month in ("march", "april", "may"))
    assert '@"April (2).csv" and @"May sales.csv" and' in request


def test_output_that_fits_the_terminal_opens_no_pager(chat, tmp_path):
    pager = tmp_path / "pager.sh"
    pager.write_text("#!/bin/sh\necho PAGED; cat\n")
    pager.chmod(0o755)
    cell = "print('one line'); [print('row', n) for n in range(200)] if 'many' in globals() else None; many = 1"
    replies = [plans("do"), codes(cell), plans("done.", to="User"), plans("do"), codes(cell), plans("done.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, pager=pager)
        for shown in ("one line", "PAGED"):
            screen.wait_for("\n>")
            screen.type("go\n")
            screen.wait_for("done.")
            screen.wait_for("\n>")
            screen.type("/output\n")
            screen.wait_for("/output")
            screen.wait_for(shown)
        screen.wait_for("row 199")
        screen.wait_for(">")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    assert screen.text.count("PAGED") == 1


def test_a_first_lesson_makes_its_folder(chat, tmp_path):
    with replay_server([plans("Hello to you.", to="User"), '{"lesson": "Greet back."}']) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("/help\n")
        screen.wait_for("/learn      [FOLDER]")
        screen.wait_for(">")
        screen.type("hello\n")
        screen.wait_for("1 model call")
        screen.wait_for(">")
        screen.type("/learn\n")
        screen.wait_for("name a folder, which is made (/learn lessons")
        screen.wait_for(">")
        screen.type("/learn lessons\n")
        screen.wait_for("a lesson, which you may edit:")
        screen.wait_for(">")
        screen.type("/exit\n")
        assert process.wait(SECONDS) == 0

    (path,) = (tmp_path / "lessons").iterdir()
    assert "Greet back." in path.read_text(encoding="utf-8")


def test_a_role_that_raises_leaves_the_talk_alive(chat, tmp_path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "role.yaml").write_text("alias: Broken\nintro: Breaks.\n", encoding="utf-8")
    (folder / "broken.py").write_text(
        "from tw_autogen import Role\n\n\nclass Broken(Role):\n    def reply(self, memory, **kwargs):\n"
        "        raise KeyError('oops')\n",
        encoding="utf-8",
    )
    replies = [plans("break", to="Broken"), plans("It is out of order.", to="User"), plans("Still here.", to="User")]
    with replay_server(replies) as server:
        screen, process = chat(server, "--roles", "./broken")
        screen.wait_for("\n>")
        screen.type("break\n")
        screen.wait_for("the role Broken failed: KeyError: 'oops'")
        screen.wait_for("It is out of order.")
        screen.wait_for("\n>")
        screen.type("hello\n")
        screen.wait_for("Still here.")
        screen.wait_for(">")
        screen.type("/exit\n")
        assert process.wait(SECONDS) == 0


def test_an_export_replaces_no_file_and_no_error_of_a_command_ends_the_chat(chat, tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    with replay_server([plans("Still here.", to="User")]) as server:
        screen, process = chat(server)
        screen.wait_for("\n>")
        screen.type("hello\n")
        screen.wait_for("1 model call")
        screen.type("/export notes.md\n")
        screen.wait_for("notes.md is there already")
        assert (tmp_path / "notes.md").read_text() == "mine"
        screen.type("/export --force notes.md\n")
        screen.wait_for("written: ")
        screen.type("/save notes.md/x.yaml\n")
        screen.wait_for("/save: ")
        screen.type("/exit\n")
        assert process.wait(SECONDS) == 0
    assert "Still here." in (tmp_path / "notes.md").read_text()


def test_saving_in_the_users_folder_is_granted_for_good_in_a_running_chat(chat, tmp_path):
    place = tmp_path / "work"  # tmp_path is the home folder, which code can't see
    place.mkdir(mode=0o755)
    refused = codes(f"open({str(place / 'a.csv')!r}, 'w').write('x')")
    replies = [
        *(plans("do it"), refused, codes("open('a.csv', 'w').write('y')"), plans("Done.", to="User")),
        *(plans("do it"), codes("open('b.csv', 'w').write('y')"), plans("Done too.", to="User")),
    ]
    with replay_server(replies) as server:
        screen, process = chat(server, "-C", str(place), cwd=place)
        screen.wait_for(">")
        screen.type("put it into my folder\n")
        screen.wait_for("which it can only read. Save there what it makes for this request? [y/N/always")
        screen.type("always\n")
        screen.wait_for("Done.")
        screen.wait_for("saved a.csv")
        screen.wait_for(">")
        screen.type("once more\n")
        screen.wait_for("saved b.csv")
        screen.wait_for(">")
        screen.type("/exit\n")
        assert process.wait(SECONDS) == 0
        told = [request["messages"][-1]["content"] for request in server.requests]

    assert sorted(path.name for path in place.iterdir() if path.suffix) == ["a.csv", "b.csv"]
    allowed = f"The User allows files to be saved in {place}"
    assert "but not write there" in told[0]
    assert allowed not in told[0]
    assert allowed in told[2]
    assert allowed in told[4]


def test_open_hands_on_a_private_copy_and_follows_no_link(tmp_path, monkeypatch):
    outside, files = tmp_path / "outside", tmp_path / "session" / "files"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret", encoding="utf-8")
    (files / "sub").mkdir(parents=True)
    (files / "sub" / "note.txt").write_text("note", encoding="utf-8")
    (files / "page.html").write_text("<script>1</script>", encoding="utf-8")
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="1" height="1"/></svg>'
    (files / "good.svg").write_text(svg, encoding="utf-8")
    (files / "bad.svg").write_text(svg.replace("<rect", "<script>1</script><rect"), encoding="utf-8")
    (files / "way").symlink_to(outside)
    (files / "secret2.txt").symlink_to(outside / "secret.txt")
    opened, said = [], []
    talk = Chat(Options(), (), stdout_console())
    talk._session = SimpleNamespace(folder=files)
    monkeypatch.setattr("tw_autogen.cli.chat.click.launch", lambda path: opened.append(Path(path)) or 0)
    monkeypatch.setattr(talk, "_say", lambda words, *rest, **more: said.append(words))
    links = (files / "way" / "secret.txt", files / "secret2.txt", outside / "secret.txt")
    false = []
    for name, held in (
        ("a.png", b"MZ\x90\0"),
        ("a.txt", b"\x7fELF\0"),
        ("a.csv", b"#!/bin/sh\n"),
        ("a.pdf", b"<html>"),
    ):
        (files / name).write_bytes(held)
        false.append(files / name)
    odd = files / "a\x1b[2Jb.png"
    odd.write_bytes(b"\x89PNG\r\n\x1a\n")
    for path in (
        *links,
        files / "page.html",
        files / "bad.svg",
        *false,
        files / "sub/note.txt",
        files / "good.svg",
        odd,
    ):
        talk._show.tally.artifacts = {str(path): {}}
        talk._open_file("")

    copy, drawing, picture = opened
    assert (copy.name, copy.read_text(encoding="utf-8")) == ("note.txt", "note")
    assert not copy.is_relative_to(files)
    assert ["opening it could run something" in one for one in said] == [True] * 9
    assert (drawing.name, "<rect" in drawing.read_text(encoding="utf-8")) == ("good.svg", True)
    assert (picture.name, picture.read_bytes()) == ("open.png", odd.read_bytes())
    for one in opened:
        remove_folder(one.parent)


@pytest.mark.parametrize(
    ("words", "named", "missing"),
    [
        ('(@a.csv), "@b.csv": “@c.csv”…', ["a.csv", "b.csv", "c.csv"], []),
        ("@a.csv、 「@b.csv」。", ["a.csv", "b.csv"], []),
        ("me@a.csv and @Override", [], []),
        ("@nosuch.csv, as @nosuch.csv", [], ["nosuch.csv"]),
    ],
)
def test_a_file_is_named_whatever_stands_around_it_and_one_that_is_missing_once(tmp_path, words, named, missing):
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).touch()

    found, lost = named_files(words, tmp_path)

    assert [one.name for one in found] == named
    assert [one.problem.split("'")[1] for one in lost] == missing


@pytest.fixture
def talk(tmp_path, monkeypatch):
    """A chat without a terminal, in a folder of its own; its lines are in `talk.said`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    with replay_server([plans("Fine.", to="User")] * 3) as server:
        talk = Chat(Options(base_url=server.base_url, sets=("model.name=a", "planner.model=p")), (), stdout_console())
        talk.said = []
        monkeypatch.setattr(talk, "_say", lambda words, path=None, **more: talk.said.append(f"{words}{path or ''}"))
        talk._session = talk._open_session(talk._options)
        yield talk
        talk._session.close()


@pytest.mark.parametrize("line", ["/exit", "/EXIT", "/exit now", "/quit", "exit", ":q"])
def test_a_chat_ends_with_each_line_that_means_to_leave(talk, line):
    lines = iter([line])  # another one read would be a `StopIteration`

    talk._loop(SimpleNamespace(read=lambda: next(lines)))

    assert talk.said == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_change_of_session_that_fails_leaves_the_one_before_open(talk, monkeypatch, error):
    before = talk._session.id

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("tw_autogen.cli.chat.fork_session", fail)
    talk._run_command("/fork", "")

    assert (talk._session.id, talk._session.closed) == (before, False)


def test_a_session_that_can_not_be_gone_on_with_leaves_the_one_before_with_its_variables(talk):
    talk._session.run_code("import threading\nlock = threading.Lock()")  # in no copy of variables
    before = talk._session.id
    for name, words in (("nosuch", "you have no session nosuch"), (before, f"{before} is the session that you are in")):
        talk._run_command("/resume", name)

        assert (talk._session.id, [variable.name for variable in talk._session.code_variables()]) == (before, ["lock"])
        assert words in talk.said[-1]


@pytest.mark.parametrize(("command", "asks"), [("/learn", "save_experience"), ("/compact", "compact_session")])
def test_sigterm_ends_a_chat_whose_command_asks_a_model(talk, monkeypatch, command, asks):
    def stop(*args):
        raise Terminated(signal.SIGTERM)

    for place in (talk._session, sys.modules["tw_autogen.cli.chat"]):
        monkeypatch.setattr(place, asks, stop, raising=False)
    with pytest.raises(Terminated, match="SIGTERM"):
        talk._run_command(command, "")


def test_an_error_of_the_system_while_a_question_runs_is_a_line(talk):
    def fail():
        raise OSError(28, "No space left on device")

    talk._answer(fail, "why?", [])

    assert talk.said[-1] == "[Errno 28] No space left on device"
    assert not talk._session.closed


def test_a_model_that_is_named_in_the_chat_beats_those_that_were_set_before(talk):
    talk._run_command("/model", "b")
    talk.said.clear()
    talk._run_command("/model", "")

    assert [line.split()[1] for line in talk.said] == ["b"]


def test_paths_of_commands_may_begin_with_a_tilde_and_stand_in_quotes(talk, tmp_path, monkeypatch):
    talk._ask("hello")
    kept = []
    monkeypatch.setattr(talk._session, "save_experience", lambda folder: kept.append(folder) or Path("x"))
    for words in ("'my lessons'", "my lessons", ""):
        talk._run_command("/learn", words)
    talk._run_command("/export", "~/x.md")

    assert kept == ["my lessons", "my lessons", None]
    assert (tmp_path / "home" / "x.md").is_file()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (
            "/compact",
            ["the model summarizes what is long enough; ", "there is too little before the last"],
        ),
        ("/cost", ["cost       unknown; model.prices sets prices"]),
        ("/info", ["plugins    none; add with --plugins"]),
        (
            "/help",
            ["/export     FILE [--force]  ", "; default: the newest", "another session; without ID: list"],
        ),
    ],
)
def test_a_command_says_only_what_is_so_in_a_chat_without_a_question(talk, command, shown):
    talk._show.opened = talk._show.opened or SimpleNamespace(roles=[], plugins=[])
    talk._run_command(command, "")

    said = "\n".join(talk.said)
    assert [words for words in shown if words not in said] == []
    assert "is asked for" not in said


def test_a_cleared_chat_resumes_nothing(talk):
    talk._run_command("/clear", "")

    assert talk.said == ["the conversation is forgotten; variables and files stay"]
