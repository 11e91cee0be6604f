"""What came of code, in words; and which files a cell made, whoever wrote them."""

import os

import pytest

from tw_autogen.code_interpreter.cell_runner import new_files, snapshot, with_short_names
from tw_autogen.code_interpreter.deliberate_errors import raised_by_cell
from tw_autogen.code_interpreter.report_texts import (
    check_outcome,
    execution_report,
    files_line,
    findings_report,
    output_text,
    review_reasons,
)
from tw_autogen.code_interpreter.rules import Finding
from tw_autogen.code_interpreter.task_progress import TaskProgress
from tw_autogen.kernel import Artifact, Execution, Log, Variable
from tw_autogen.safe_folder import remove_folder


def test_everything_that_came_of_a_cell_is_reported(tmp_path):
    chart = Artifact("chart", "chart", tmp_path / "chart.png", "a line\nand more")
    execution = Execution(True, "42", "printed\n", "careful\n", (Log("info", "plugin", "done"),))

    assert execution_report(execution, [chart], 1000).splitlines() == [
        "The code ran.",
        "Printed:",
        "printed",
        "Result:",
        "42",
        "Standard error:",
        "careful",
        "Log:",
        "[info] plugin: done",
        "Files: chart.png (a line)",
    ]


def test_a_cell_that_shows_nothing_says_so():
    assert execution_report(Execution(True), [], 1000) == "The code ran.\nIt printed nothing and has no result."


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("x = 1\nresult = x + 1", True),
        ("result = 2\nf()", False),
        ("result =", False),
        ("", False),
        ("a, b = 1, 2", False),
    ],
)
def test_a_cell_that_shows_nothing_shows_the_variable_that_it_assigned_last(code, shown):
    told = execution_report(Execution(True, variables=(Variable("result", "int", "2"),)), [], 100, code=code)

    assert ("The variable assigned last is result: int, 2" in told) == shown


def test_a_lost_kernel_is_told():
    told = execution_report(Execution(False, error="Killed.", state_lost=True), [], 1000)

    assert "the next cell starts a fresh one, without the variables, unless the error says that they come back" in told
    assert "Error:\nKilled." in told


def test_each_part_is_cut_by_itself():
    told = execution_report(Execution(True, "r" * 5000, "p" * 5000), [], 100)

    assert told.count("4900 characters left out") == 2


def test_a_finding_is_told_with_its_remedy():
    told = findings_report([Finding(3, "module", "import of 'os' is not allowed", "Use pathlib.")])

    assert "- line 3 (module): import of 'os' is not allowed\n  Use pathlib." in told


def test_what_the_user_gets_has_no_frame_around_it(tmp_path):
    saved = Artifact("a.csv", "df", tmp_path / "a.csv", "3 kB")

    assert output_text(Execution(True, "7", "seven\n"), [saved], 100) == "seven\n7\nFiles: a.csv (3 kB)"


@pytest.mark.parametrize("said", ["Saved as a.csv.", '{"rows": 7}', "[7]"])
def test_files_are_not_named_twice_and_never_behind_json(tmp_path, said):
    saved = Artifact("a.csv", "df", tmp_path / "a.csv", "3 kB")

    assert output_text(Execution(True, None, f"{said}\n"), [saved], 100) == said


def test_words_in_brackets_are_not_json(tmp_path):
    saved = Artifact("a.csv", "df", tmp_path / "a.csv")

    assert output_text(Execution(True, None, "[done] data.csv"), [saved], 100) == "[done] data.csv\nFiles: a.csv"


def test_warnings_speak_against_passing_a_result_on():
    assert review_reasons(Execution(True)) == []
    assert review_reasons(Execution(True, stderr="FutureWarning")) == ["standard error is not empty"]
    assert review_reasons(Execution(True, state_lost=True)) == ["the kernel was lost"]
    logs = (Log("warning", "display", "nothing is drawn"), Log("info", "plugin", "done"))
    assert review_reasons(Execution(True, logs=logs)) == ["nothing is drawn"]


def test_new_and_changed_files_are_found_but_not_known_hidden_or_linked_ones(tmp_path):
    (tmp_path / "old.csv").write_text("a", encoding="utf-8")
    (tmp_path / "kept.txt").write_text("a", encoding="utf-8")
    before = snapshot(tmp_path)
    (tmp_path / "old.csv").write_text("longer", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "new.png").write_bytes(b"x" * 1500)
    (tmp_path / "known.svg").write_text("<svg/>", encoding="utf-8")
    (tmp_path / ".hidden").write_text("a", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "kept.txt")

    found = new_files(before, snapshot(tmp_path), {tmp_path / "known.svg"})

    assert [(one.name, one.kind, one.preview) for one in found] == [
        ("old.csv", "df", "6 bytes"),
        ("new.png", "image", "1.5 kB"),
    ]


def test_of_too_many_files_none_counts_as_new_that_may_have_been_there_before(tmp_path):
    (tmp_path / "sub").mkdir()
    for place in (tmp_path, tmp_path / "sub"):
        for number in range(1500):
            (place / f"{number:04}.csv").touch()
    before = snapshot(tmp_path)
    for number in range(10):
        (tmp_path / f"{number:04}.csv").unlink()
    (tmp_path / "new.csv").touch()
    (tmp_path / "sub" / "0001.csv").write_text("changed")

    assert [file.name for file in new_files(before, snapshot(tmp_path), set())] == ["new.csv", "0001.csv"]


@pytest.mark.parametrize(
    ("names", "count"),
    [
        ([f"{number:04}.csv" for number in range(2000)], 2000),
        ([f"{'a' * 100}/{'b' * 100}/{number:04}.csv" for number in range(2000)], 238),
        (["a/" * 600 + "b.csv", "c.csv"], 1),
    ],
)
def test_names_of_artifacts_are_bounded_and_a_list_of_them_says_how_many_it_leaves_out(tmp_path, names, count):
    found = with_short_names([Artifact(name.rpartition("/")[2], "df", tmp_path / name) for name in names], tmp_path)

    line, listed = files_line(found, tmp_path), Artifact.list_markdown(found)
    assert len(found) == count
    assert len(line) < 5100
    assert len(listed) < 10_200 + len(str(tmp_path)) * 100
    assert line.endswith(" more") == (count > 1) == listed.endswith(" more")


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="no names that are longer than a path here")
def test_names_of_files_that_lie_very_deep_are_taken_down_only_so_far(tmp_path):
    (tmp_path / "a.csv").touch()
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 250, dir_fd=here)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    for number in range(1800):
        os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)

    found = snapshot(tmp_path)

    assert tmp_path / "a.csv" in found
    assert 0 < sum(len(str(one)) for one in found) < 17_000_000
    assert found.end is not None
    remove_folder(tmp_path)


def test_a_try_that_failed_is_told_by_its_error_and_not_by_the_hints_behind_it():
    work = TaskProgress(thought="Mended.", code="1", execution=Execution(True, "1"), failed=1)
    work.wrong.append("cell 1, line 2\n    pd.to_datetime(days)\nValueError: no such format. Try:\n    - another one")

    assert work.message(1000, "Planner").startswith(
        "It took 2 tries; the one before: ValueError: no such format. Try:\n"
    )


def _made(path, preview=""):
    path.parent.mkdir(exist_ok=True)
    path.write_text("a\n", encoding="utf-8")
    return Artifact(path.name, "df", path, preview)


def test_files_of_a_task_are_those_that_are_there_as_they_were_described_last(tmp_path):
    work = TaskProgress(code="1", execution=Execution(True, None, "done\n"), folder=tmp_path)
    work.record_files([_made(tmp_path / "out.csv", "2 bytes"), _made(tmp_path / "draft.csv")])
    (tmp_path / "draft.csv").unlink()
    work.record_files([_made(tmp_path / "out.csv", "2 kB"), _made(tmp_path / "x/out.csv")])

    assert work.message(1000, "User") == "done\nFiles: out.csv (2 kB), x/out.csv"
    assert "Files: out.csv (2 kB), x/out.csv" in work.message(1000, "Planner")


@pytest.mark.parametrize(
    ("work", "last"),
    [
        (TaskProgress(thought="The table is done."), "Files: a.csv"),
        (TaskProgress(thought="The table is in a.csv."), "The table is in a.csv."),
        (TaskProgress(thought="[7]"), "[7]"),
        (TaskProgress(code="import os", findings=[Finding(1, "module", "no os", "No.")]), "Files: a.csv"),
    ],
)
def test_files_of_a_task_that_ends_in_words_or_refused_code_are_not_lost(work, last, tmp_path):
    work.record_files([_made(tmp_path / "a.csv")])

    (files,) = [attachment for attachment in work.attachments(1000) if attachment.type == "artifact_paths"]
    assert [one["name"] for one in files.extra] == ["a.csv"]
    assert work.message(1000, "User").splitlines()[-1] == last


FAILED_CHECK = "Traceback (most recent call last):\n  cell 1, line 1\n    assert …\n"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("AssertionError: sums differ: 3 and 4", (False, "sums differ: 3 and 4")),
        ("AssertionError: totals differ:\nRoundingError 0.5 in row 3", (False, "totals differ:")),
        ("AssertionError: \nArrays are not equal\n x: [1]", (False, "Arrays are not equal\n x: [1]")),
        ("AssertionError", (False, "the assertion does not hold")),
        ("KeyError: 'x'", (None, "KeyError: 'x'")),
    ],
)
def test_a_failed_assertion_is_known_whatever_its_message_holds(error, outcome):
    assert check_outcome(Execution(False, error=f"{FAILED_CHECK}{error}")) == outcome


@pytest.mark.parametrize(
    ("code", "deliberate"),
    [
        ("\n\n\nraise ValueError('no rows for 2024')", True),
        ("\n\n\nraise ValueError('no rows for 2024') from None", True),
        ("%matplotlib inline\n\n\nraise ValueError('no rows for 2024')", True),
        ("\n\n\nraise ValueError('no rows for 2024') from error", False),
        ("\n\n\nf(", False),
    ],
)
def test_an_error_that_a_cell_raises_on_purpose_is_known(code, deliberate):
    error = "Traceback (most recent call last):\n  cell 1, line 4\n    raise …\nValueError: no rows for 2024"

    assert raised_by_cell(code, error) == deliberate


def test_an_error_that_names_a_line_of_thousands_of_digits_is_only_text():
    assert not raised_by_cell("raise ValueError('x')", f"Traceback\n  cell 1, line {'1' * 5000}\nValueError: x")
