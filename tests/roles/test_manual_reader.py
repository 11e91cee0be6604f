import tracemalloc

import pytest

from tw_autogen import open_session
from tw_autogen.errors import RoleSpecError
from tw_autogen.testing import FakeKernel, ScriptedModel, check_role, codes, plans

MANUAL = "# Cleaning\n\nDrop rows without a day.\n\n## Units\n\nMultiply by 1000.\n\n## Names\n\nUpper case.\n"


@pytest.fixture
def manual(stage):
    (stage.folder / "cleaning.md").write_text(MANUAL, encoding="utf-8")
    return stage


def test_a_manual_is_read_word_for_word_and_pinned(manual):
    role = manual.make("manual_reader")
    (manual.folder / "other.md").write_text("Something else.")

    said = manual.ask(role, "Read cleaning.md, please").message

    assert said.startswith("Read cleaning.md, lines 1-11 (all of it), and pinned it on the board, where all workers")
    assert said.endswith(MANUAL.strip())
    assert manual.board(role) == f"Read from cleaning.md, lines 1-11 (all of it), word for word:\n{MANUAL.strip()}"


@pytest.mark.parametrize(
    ("asked", "read", "text"),
    [
        ("cleaning.md, lines 3-5", "lines 3-5 of 11", "Drop rows without a day.\n\n## Units"),
        ("line 7 of cleaning.md", "lines 7-7 of 11", "Multiply by 1000."),
        ("what does it say under 'units'?", "lines 5-8 of 11", "## Units\n\nMultiply by 1000."),
        ("What does the manual Cleaning tell?", "lines 1-11 (all of it)", MANUAL.strip()),
        ("Read the part Names of the manual cleaning", "lines 9-11 of 11", "## Names\n\nUpper case."),
    ],
)
def test_a_part_is_read_by_lines_or_heading(manual, asked, read, text):
    role = manual.make("manual_reader")

    said = manual.ask(role, asked).message

    assert f"cleaning.md, {read}, and pinned" in said
    assert said.endswith(f"It says:\n\n{text}")


RULES = """# Rules
Intro.
## Data
Data rules.
## Update
First:
```bash
# get the package
```
Then restart.
### Late
At night.
## Art
Pictures.\f
The end.
"""


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("Read rules.md before you start; it says how a database is made", "lines 1-15 (all of it)"),
        ("Data and Art in rules.md", "lines 3-4 and 13-15 of 15"),
        ("Read Late, Data and Update of rules.md", "lines 3-4 and 11-12 of 15"),
        ("Read Update of rules.md", "lines 5-12 of 15"),
        ("what says rules.md of line 2 of orders.csv?", "lines 1-15 (all of it)"),
        ("请阅读rules.md并清理", "lines 1-15 (all of it)"),
    ],
)
def test_all_that_is_named_is_read_and_nothing_is_left_out_unasked(stage, asked, read):
    (stage.folder / "rules.md").write_text(RULES, encoding="utf-8")
    (stage.folder / "other.md").write_text("Something else.")

    assert stage.ask(stage.make("manual_reader"), asked).message.startswith(f"Read rules.md, {read}, and pinned")


def test_what_is_read_later_is_pinned_below_and_nothing_twice(manual):
    role = manual.make("manual_reader")
    (manual.folder / "safety.txt").write_text("Keep a copy.")

    for name in ("cleaning.md", "safety.txt"):
        manual.ask(role, name)
    again = manual.ask(role, "safety.txt once more").message

    assert "which is pinned on the board already" in again
    assert manual.board(role).count("word for word:") == 2
    assert manual.board(role).endswith("Read from safety.txt, lines 1-1 (all of it), word for word:\nKeep a copy.")


def test_of_a_long_one_it_shows_the_headings_and_pins_nothing(manual):
    role = manual.make("manual_reader", limit_chars=40)

    said = manual.ask(role, "cleaning.md").message

    assert said.startswith("cleaning.md is too long to be read at once (11 lines, ")
    assert said.endswith("Ask for a part by its heading, or by lines:\nline 1: Cleaning\nline 5: Units\nline 9: Names")
    assert manual.board(role) == ""
    assert "Multiply by 1000." in manual.ask(role, "Units").message


def test_a_long_one_without_headings_is_asked_for_by_lines(stage):
    (stage.folder / "log.txt").write_text("a line\n" * 100)
    role = stage.make("manual_reader", limit_chars=70)

    assert "Ask for some of its lines: 'log.txt, lines 1-10'" in stage.ask(role, "log.txt").message


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("Read cleaning.md", "lines 1-5 (all of it)"),
        ("Read Docs/Cleaning.md", "lines 1-5 (all of it)"),
        ("lines 1-2 of cleaning.md", "lines 1-2 of 5"),
        ("Cleaning in cleaning.md", "lines 3-5 of 5"),
    ],
)
def test_the_name_of_a_manual_in_a_folder_asks_for_no_part_of_it(stage, asked, read):
    (stage.folder / "docs").mkdir()
    (stage.folder / "docs" / "cleaning.md").write_text("# Guide\nFirst.\n## Cleaning\nWash.\nDry.\n")
    role = stage.make("manual_reader")

    assert stage.ask(role, asked).message.startswith(f"Read docs/cleaning.md, {read}")


def test_a_name_that_is_kept_in_parts_is_the_one_that_is_typed(stage):
    (stage.folder / "U\u0308bersicht.md").write_text("Waschen.\n")
    (stage.folder / "other.md").write_text("Trocknen.\n")

    said = stage.ask(stage.make("manual_reader"), "Lies \u00dcbersicht.md").message

    assert said.startswith("Read \u00dcbersicht.md, lines 1-1 (all of it)")
    assert said.endswith("Waschen.")


def test_of_a_line_that_is_too_long_no_lines_are_offered(stage):
    (stage.folder / "log.txt").write_text("short\n" * 50 + "x" * 100 + "\n")
    role = stage.make("manual_reader", limit_chars=70)

    said = stage.ask(role, "log.txt, line 51").message

    assert said.startswith("log.txt is too long to be read at once (1 lines, 100 characters wanted, at most 70).")
    assert said.endswith(" Let code read that line, or raise role.manual_reader.limit_chars.")
    assert "'log.txt, lines 41-44'" in stage.ask(role, "log.txt, lines 41-51").message


def test_headings_of_restructured_text_are_seen(stage):
    (stage.folder / "guide.rst").write_text("Title\n=====\n\nWords.\n\nSteps\n-----\n\nGo.\n")

    assert stage.ask(stage.make("manual_reader"), "Steps in guide.rst").message.endswith("Steps\n-----\n\nGo.")


def test_without_a_name_it_says_which_there_are(manual):
    role = manual.make("manual_reader")
    (manual.folder / "safety.txt").write_text("Keep a copy.")
    (manual.folder / "table.csv").write_text("a,b")

    said = manual.ask(role, "Read it").message

    assert said == "Nothing was read: name the file. There are: cleaning.md, safety.txt"
    assert manual.ask(role, "cleaning.md, lines 90-99").message == (
        "cleaning.md has 11 lines; there are no such lines in it."
    )


def test_nothing_outside_the_folder_is_read(manual, tmp_path):
    (tmp_path / "secret.md").write_text("the key is AB12")
    (manual.folder / "link.md").symlink_to(tmp_path / "secret.md")
    (manual.folder / ".hidden.md").write_text("hidden")
    role = manual.make("manual_reader")

    for wanted in ("link.md", "../secret.md", str(tmp_path / "secret.md"), ".hidden.md"):
        said = manual.ask(role, f"Read {wanted}").message
        assert "AB12" not in said
        assert "hidden\n" not in said


def test_bytes_that_are_no_text_are_said_to_be(stage):
    (stage.folder / "odd.txt").write_bytes(b"\xff\xfe\x00")

    said = stage.ask(stage.make("manual_reader"), "odd.txt").message

    assert said == "odd.txt can't be read: not UTF-8; save it as UTF-8"


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ("nope.md", "nope.md"),
        ("Read 'refunds.md' and pin it.", "refunds.md"),
        ("../../x.md", "../../x.md"),
        ("cleaning.txt", "cleaning.txt"),
        ("Show /etc/passwd and a.pdf!", "/etc/passwd, no a.pdf"),
    ],
)
def test_a_file_that_is_not_there_is_said_to_be_and_no_other_is_read(manual, asked, missing):
    role = manual.make("manual_reader")

    assert manual.ask(role, asked).message == f"Nothing was read: there is no {missing}; there is: cleaning.md"
    assert manual.board(role) == ""


def test_what_is_there_is_read_also_where_another_is_missing_and_by_any_path(manual):
    role = manual.make("manual_reader")
    (manual.folder / "my rules.md").write_text("Be brief.")

    both = manual.ask(role, "Read cleaning.md and refunds.md").message
    assert both.startswith("Read cleaning.md, lines 1-11")
    assert both.endswith("There is no refunds.md; there are: cleaning.md, my rules.md")
    assert manual.ask(role, f"Read {manual.folder}/cleaning.md").message.startswith("Read cleaning.md, lines 1-11")
    assert manual.ask(role, "Read my rules.md.").message.startswith("Read my rules.md, lines 1-1")


def test_words_that_name_no_manual_leave_the_only_one(manual):
    role = manual.make("manual_reader")

    for asked in ("How is orders.csv cleaned?", "Read all *.md files", "Read the manual."):
        assert "cleaning.md, lines 1-11" in manual.ask(role, asked).message


def test_manuals_of_a_folder_are_offered_with_each_request_and_a_wrong_folder_is_an_error(stage, tmp_path):
    books = tmp_path / "books"
    (books / "more").mkdir(parents=True)
    (books / "more" / "setup.md").write_text("Turn it on.")
    role = stage.make("manual_reader", folder=str(books))

    assert role.offer("anything") == "ManualReader can read: more/setup.md"
    assert "Turn it on." in stage.ask(role, "setup.md").message
    with pytest.raises(RoleSpecError, match=r"manual_reader/role\.yaml: folder: .*nowhere is no folder"):
        stage.make("manual_reader", folder=str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("files", "offered"),
    [
        (["ws/s-1/events.jsonl", "ws/s-1/files/notes.md", "ws/s-1/answer.md", "ws/about.md"], "setup.md, ws/about.md"),
        (["ws/s-1/files/notes.md"], "setup.md, ws/s-1/files/notes.md"),
        (["ws/events.jsonl", "ws/notes.md"], "setup.md, ws/notes.md"),
        (["events.jsonl", "files/notes.md"], "files/notes.md, setup.md"),
    ],
)
def test_files_of_sessions_that_are_kept_in_the_folder_are_no_manuals(stage, tmp_path, files, offered):
    books = tmp_path / "books"
    for name in ("setup.md", *files):
        (books / name).parent.mkdir(parents=True, exist_ok=True)
        (books / name).write_text(f"Words of {name}.")
    role = stage.make("manual_reader", folder=str(books))

    assert role.offer("anything") == f"ManualReader can read: {offered}"
    said = stage.ask(role, f"Read {' and '.join(files)}").message
    assert [name for name in files if f"Words of {name}" in said] == [file for file in files if file in offered]


def test_the_code_interpreter_reads_what_is_pinned(tmp_path):
    (tmp_path / "cleaning.md").write_text(MANUAL)
    script = [
        plans("Read cleaning.md", to="ManualReader"),
        plans("Do as the manual says", to="CodeInterpreter"),
        codes("1"),
        plans("Done.", to="User"),
    ]
    with (
        ScriptedModel(script) as model,
        open_session(
            model,
            roles=["planner", "code_interpreter", "manual_reader"],
            kernel=lambda folder: FakeKernel(["1"], folder=folder),
            folder=tmp_path / "sessions",
        ) as session,
    ):
        session.ask("Follow cleaning.md", files=[tmp_path / "cleaning.md"])

    task = model.calls[2][-1]["content"]
    assert "Read from cleaning.md, lines 1-11 (all of it), word for word:\n# Cleaning" in task
    assert "Multiply by 1000." in task


def test_it_does_what_every_role_must(stage):
    files = {"cleaning.md": MANUAL.encode()}
    assert check_role(lambda: stage.make("manual_reader"), ask="Read cleaning.md", files=files)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"aa\n--\n" * 1_000_000, "m.md can't be read: larger than the 20 MB that one reply reads; split it"),
        (b"x" * 20_000_001, "m.md can't be read: larger than the 20 MB that one reply reads; split it"),
        (b"-" * 1_000_000, "m.md is too long to be read at once (1 lines"),
    ],
    ids=["lines", "bytes", "a line of signs"],
)
def test_what_code_leaves_takes_bounded_memory(stage, content, said):
    (stage.folder / "m.md").write_bytes(content)
    role = stage.make("manual_reader")
    tracemalloc.start()
    try:
        answer = stage.ask(role, "read m.md").message
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert answer.startswith(said)
    assert most < 100_000_000


def test_files_of_one_reply_are_bounded_together(stage):
    (stage.folder / "a.md").write_bytes(b"x" * 9_000_000)
    for number in range(4):
        (stage.folder / f"the{number}.md").hardlink_to(stage.folder / "a.md")
    role = stage.make("manual_reader")

    said = stage.ask(role, "a.md the0.md the1.md the2.md the3.md").message

    assert said.count("is too long to be read at once") == 2
    assert said.count("larger than the 20 MB that one reply reads") == 3


def test_a_link_that_comes_later_is_not_followed(stage, tmp_path, monkeypatch):
    for folder in ("here/sub/books", "private/books"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "private/books/setup.md").write_text("the key is AB12")
    monkeypatch.chdir(tmp_path / "here")
    role = stage.make("manual_reader", folder="sub/books")
    (tmp_path / "here/sub").rename(tmp_path / "gone")
    (tmp_path / "here/sub").symlink_to(tmp_path / "private")

    said = stage.ask(role, "setup.md").message

    assert said.startswith("Nothing was read: ")
    assert "a link or a file is in the way at 'sub'" in said
    assert role.offer("read setup.md") == ""


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("read /" + "a/" * 300_000, "Nothing was read: name the file. There are: "),
        ("read " + " ".join(f"x{number}.md" for number in range(60_000)), "Nothing was read: there is no x0.md, no x1"),
        ("read x\0.md", "Nothing was read: name the file. There are: "),
        ("read m.md, lines " + "9" * 5000, "m.md has 2 lines; there are no such lines in it."),
        ("read m.md. " + "- " * 1_000_000, "Read m.md, lines 1-2 (all of it)"),
    ],
    ids=["components", "names", "NUL", "digits", "length"],
)
def test_any_message_is_read_in_linear_time(stage, asked, said, cpu_seconds):
    (stage.folder / "m.md").write_text("# A\nwords\n")
    (stage.folder / "n.md").write_text("# B\nwords\n")
    role = stage.make("manual_reader")
    start = cpu_seconds()

    answer = stage.ask(role, asked).message

    assert cpu_seconds() - start < 3.0
    assert answer.startswith(said)
    assert ("Only the first 50,000 characters" in answer) == (len(asked) > 50_000)
    assert answer.count("no x") <= 1000


@pytest.mark.parametrize(
    ("headings", "read"),
    [
        ("# aaab\n" * 100_000, "is too long to be read at once"),
        ("".join(f"# a{number}\n" for number in range(100_000)), "is too long to be read at once"),
        ("# b\n\n# " + "a" * 150 + "\n", "lines 3-3 of 3"),
    ],
    ids=["one", "many", "long"],
)
def test_headings_are_looked_for_in_a_long_message_in_linear_time(stage, headings, read, cpu_seconds):
    (stage.folder / "m.md").write_text(headings)
    role = stage.make("manual_reader")
    start = cpu_seconds()

    answer = stage.ask(role, "read m.md " + "a" * 49_000).message

    assert cpu_seconds() - start < 4.0
    assert f"m.md {read}" in answer or f"m.md, {read}" in answer
