"""Each check, where it holds and where it doesn't; and what a wrong scenario.yaml says."""

import socket
import sys
from dataclasses import replace

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Plan, Post, Round
from tw_autogen.errors import ScenarioError
from tw_autogen.events import (
    CellRan,
    CellStarted,
    CodeChecked,
    HistoryCompacted,
    LessonsRecalled,
    ModelCalled,
    PluginsSelected,
    RoundClosed,
    RoundOpened,
)
from tw_autogen.scenario import read_scenario
from tw_autogen.scenario.check_answer import numbers_in
from tw_autogen.scenario.evidence import Evidence
from tw_autogen.scenario.expect import CHECKS, read_expectation


def ran(ok):
    return CellRan(1, ok, None, "", "", "" if ok else "ZeroDivisionError", [], [], False, 0.1)


@pytest.fixture
def evidence(tmp_path):
    """One round: 1,234.5 as an answer, one failed and one good cell with a plugin, a file and a table."""
    (tmp_path / "note.txt").write_text("key 42\n", encoding="utf-8")
    (tmp_path / "same.txt").write_text(" key 42", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    (tmp_path / "odd.csv").write_text("ts,val\na,1.5\nb,2\n", encoding="utf-8")
    short, long = Plan.parse("1. a"), Plan.parse("1. a\n2. b\n3. c")
    here = Round("q")
    here.posts += [
        Post("User", "Planner", "q"),
        Post("Planner", "CodeInterpreter", "do", plan=short),
        Post("CodeInterpreter", "Planner", "done"),
        Post("Planner", "User", "It is 1,234.5 kg.", (Attachment(AttachmentType.stop, "Completed"),), plan=long),
    ]
    events = [
        RoundOpened(here.id, "q", []),
        LessonsRecalled("Planner", ["weights"]),
        HistoryCompacted("Planner", 900, 300, "The user weighs barges."),
        ModelCalled("Planner", "m", 1, 0, 1, "stop", 0.1),
        PluginsSelected("CodeInterpreter", "", ["sql_pull_data"], ["sql_pull_data", "tell_joke"], 40, False),
        CodeChecked("import os", ["line 1 (module): import of 'os' is not allowed"]),
        CellStarted(1, "1 / 0"),
        ran(ok=False),
        CellStarted(2, "df, words = sql_pull_data('q')"),
        ran(ok=True),
        RoundClosed(here.id, "finished", "Completed", "It is 1,234.5 kg.", "", 1.0),
    ]
    return Evidence.of([here], events, tmp_path, numbers=[1], lesson="Weigh each barge twice.")


CASES = [
    ({"number": 1234.5}, {"number": {"value": 1234, "within": 0.4}}, r"expected 1234 \(within 0\.4\) in the answer"),
    ({"numbers": [1234.5]}, {"numbers": {"values": [1234], "within": 0.4}}, r"expected 1234 \(within 0\.4\)"),
    ({"numbers": [None]}, {"numbers": [None, 3]}, "expected 2 requests to be answered, found 1"),
    ({"said": "^done$"}, {"said": {"matches": "done", "by": "Echo"}}, "matches 'done'; there is none"),
    ({"said": {"matches": "do", "by": "Planner"}}, {"said": "well"}, "matches 'well'; the last of 1 is 'done'"),
    ({"executed": "1 / 0"}, {"executed": "import os"}, "expected code that matches 'import os', found 2 cells"),
    ({"lesson": "(?i)twice"}, {"lesson": "once"}, "expected a lesson that matches 'once', found 'Weigh each"),
    ({"recalled": "weights"}, {"recalled": ["weights", "tides"]}, "the lesson tides to be recalled, found weights"),
    ({"summaries": 1}, {"summaries": {"at_least": 2, "matches": "barges"}}, "expected at least 2 summaries, found 1"),
    ({"summaries": {"matches": "barges"}}, {"summaries": {"matches": "lorries"}}, "in summary 1, Planner's: 'The user"),
    ({"answer": "kg"}, {"answer": "tons"}, "expected an answer that matches 'tons'"),
    ({"answer_lacks": "tons"}, {"answer_lacks": "kg"}, "expected no answer that matches 'kg'"),
    ({"stop": "Completed"}, {"stop": ["Clarification"]}, "expected the stop word Clarification, found Completed"),
    ({"file": "note.txt"}, {"file": ["a.png", "b.svg"]}, r"expected the file a\.png or b\.svg, found"),
    ({"file": {"name": "note.txt", "contains": "42"}}, {"file": {"name": "note.txt", "contains": "43"}}, "'43' in"),
    ({"file": {"name": "note.txt", "matches": r"\d+"}}, {"file": "empty.txt"}, "expected something in the file"),
    ({"table": {"name": "odd.csv", "columns": ["ts", "val"]}}, {"table": {"name": "odd.csv", "rows": 3}}, "3 rows"),
    (
        {"table": {"name": "odd.csv", "values": {"val": [2, 1.5]}}},
        {"table": {"name": "odd.csv", "values": {"val": [2, 1]}}},
        "expected in 'val' the numbers",
    ),
    (
        {"path": "User > Planner > CodeInterpreter > Planner > User"},
        {"path": "User > Planner > User"},
        "expected the posts User > Planner > User",
    ),
    ({"posts": {"at_least": 4, "at_most": 4}}, {"posts": {"at_most": 3}}, "posts"),
    ({"calls": 1}, {"calls": {"at_most": 1, "round": 1}}, None),
    ({"plugins": "sql_pull_data"}, {"plugins": "anomaly_detection"}, "the plugin anomaly_detection to be used"),
    ({"selected": "tell_joke"}, {"selected": "draw"}, "the plugin draw to be selected, found sql_pull_data, tell_joke"),
    ({"selected": {"names": "tell_joke", "at_most": 2}}, {"selected": {"names": "tell_joke", "at_most": 1}}, "found 2"),
    ({"selected": {"names": "tell_joke", "of": 40}}, {"selected": {"names": "tell_joke", "of": 41}}, "from 41 plugins"),
    ({"refused": "import of 'os'"}, {"refused": {"finding": "subprocess"}}, "a finding that matches 'subprocess'"),
    ({"never_executed": "import os"}, {"never_executed": "1 / 0"}, "cell 1: expected no code that matches"),
    ({"failed_cells": {"at_least": 1}}, {"failed_cells": {"at_most": 0}}, "failed cells"),
    ({"same_content": ["note.txt", "same.txt"]}, {"same_content": ["note.txt", "odd.csv"]}, "the same text in all"),
    ({"plan": {"step": "^b$", "at_most": 3}}, {"plan": {"step": "^d$"}}, "expected a step that matches"),
    ({"nowhere": "secret"}, {"nowhere": "ZeroDivision"}, "expected nothing that matches 'ZeroDivision'"),
    ({"cells": {"at_least": 2}}, {"cells": {"at_most": 1}}, "at most 1 cells, found 2"),
    ({"plan_grew": 2}, {"plan_grew": 3}, "expected a plan that grows by 3 or more steps, found 1 > 3 steps"),
]  # fmt: skip


@pytest.mark.parametrize(("holds", "fails", "problem"), CASES, ids=[next(iter(case[0])) for case in CASES])
def test_a_check_holds_where_it_should_and_says_in_a_line_where_it_does_not(evidence, holds, fails, problem):
    assert read_expectation(holds, rounds=1).problems(evidence) == []
    found = read_expectation(fails, rounds=1).problems(evidence)
    if problem is None:
        assert found == []
        return
    assert len(found) == 1
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(found[0])


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"file": {"name": "large.bin", "contains": "done"}}, "expected the file large.bin, found the files"),
        (
            {"file": {"name": ["nowhere.txt", "large.bin"]}},
            "expected the file nowhere.txt or large.bin, found the files",
        ),
        ({"same_content": ["large.bin", "note.txt"]}, "expected text in large.bin, found the files"),
        ({"table": {"name": "large.bin", "rows": 2}}, "expected the table large.bin, found the files"),
    ],
)
def test_a_file_beyond_the_limit_is_named_and_not_read(evidence, tmp_path, check, problem):
    with open(tmp_path / "large.bin", "wb") as file:
        file.truncate((16 << 20) + 1)

    (found,) = read_expectation(check, rounds=1).problems(evidence)

    assert problem in found
    assert "large.bin (larger than 16 MB: not read)" in found


def test_the_list_of_files_is_short_whatever_names_there_are(evidence, tmp_path):
    for number in range(400):
        (tmp_path / f"{number}{'n' * 190}").touch()
    for number in range(3):
        (tmp_path / f"long-{number}-{'n' * 220}").touch()

    (found,) = read_expectation({"file": "nowhere.txt"}, rounds=1).problems(evidence)

    assert 4000 < len(found) < 4200
    assert "long-" not in found


@pytest.mark.parametrize(
    ("content", "check", "problem"),
    [
        ("a,b\n" + "x" * 1_100_000 + ",2\n", {"rows": 1}, "expected a CSV file, found field larger than field limit"),
        ("a,b\n" + "1,2\n" * 9, {"values": {"b": [2.0]}}, "expected in 'b' the numbers '2.0', found '2, 2, 2"),
        (",".join("c" * 3000) + "\n", {"columns": ["a"]}, "expected the columns a, found c, c"),
        ("a,b\n" + "1,2\n" * 9, {"rows": 8}, "expected 8 rows, found 9"),
    ],
)
def test_a_table_that_is_not_as_expected_is_named_in_a_line(evidence, tmp_path, content, check, problem):
    (tmp_path / "odd.csv").write_text(content, encoding="utf-8")

    (found,) = read_expectation({"table": {"name": "odd.csv", **check}}, rounds=1).problems(evidence)

    assert problem in found
    assert len(found) < 1200


def told(folder, answer, stop):
    """A round in which the Planner has said this at once."""
    here = Round("q")
    here.posts += [
        Post("User", "Planner", "q"),
        Post("Planner", "User", answer, (Attachment(AttachmentType.stop, stop),)),
    ]
    return Evidence.of([here], [], folder, numbers=[1])


JSON = {
    "json": {"schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "array", "minItems": 2}}}}
}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ('{"n": [1, 2]}', None),
        ('Here it is: {"n": [1, 2]}', "expected JSON alone"),
        ('{"n": [1]}', r"found at \$\.n: "),
        ("{}", "'n' is a required property"),
        ("[" * 100_000, "expected JSON alone"),
    ],
)
def test_an_answer_in_json_is_json_alone_and_fits_its_schema(tmp_path, answer, problem):
    found = read_expectation(JSON, rounds=1).problems(told(tmp_path, answer, "Completed"))

    if problem is None:
        assert found == []
    else:
        with pytest.raises(AssertionError, match=problem):
            raise AssertionError(found[0])


@pytest.mark.parametrize("place", ["{}/schema.json", "file:///etc/hostname", "#/nowhere"])
def test_what_a_schema_refers_to_elsewhere_is_a_problem_and_not_fetched(tmp_path, place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        schema = {"$ref": place.format(f"http://127.0.0.1:{server.getsockname()[1]}")}
        found = read_expectation({"json": {"schema": schema}}, rounds=1).problems(told(tmp_path, "{}", "Completed"))

        assert "expected a schema that refers to its own parts" in found[0]
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_question_is_seen_by_its_stop_word_and_its_words(tmp_path):
    asked = told(tmp_path, "Which column is the key?", "AdditionalInformation")

    assert read_expectation({"asked_back": "key"}, rounds=1).problems(asked) == []
    assert (
        "expected a question that matches 'colour'"
        in (read_expectation({"asked_back": "colour"}, rounds=1).problems(asked)[0])
    )
    assert (
        "found none"
        in (read_expectation({"asked_back": None}, rounds=1).problems(told(tmp_path, "Which?", "Completed"))[0])
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\u5408\u8a08\u306f42\u4ef6", [42]),
        ("\u5171\u67091,234\u884c", [1234]),
        ("_42_", [42]),
        ("\u00e97, plot_7, v1.2.3", []),
        ("2000-2010, 1500-2500 kg, season 2023-24", [2000, 2010, 1500, 2500, 2023, 24]),
        ("1\u2019234.5 CHF", [1234.5]),
        ("2024-03, 2024-03-11T08:00:00.5Z, 10:30am to 4:15pm", []),
        ("p = .05, -.5 or $.50; at 10.0.0.1, v.5.1", [0.05, -0.5, 0.5]),
    ],
)
def test_numbers_are_found_where_no_blank_parts_words(text, found):
    assert numbers_in(text) == found


@pytest.mark.parametrize(("value", "within", "holds"), [(1234.4, 0.1, True), (1234.3, 0.2, True), (1234.3, 0.1, False)])
def test_a_number_at_the_edge_of_what_is_right_is_right(evidence, tmp_path, value, within, holds):
    (tmp_path / "edge.csv").write_text("val\n1234.5\n", encoding="utf-8")
    for check in (
        {"number": {"value": value, "within": within}},
        {"table": {"name": "edge.csv", "values": {"val": [value]}, "within": within}},
    ):
        assert (read_expectation(check, rounds=1).problems(evidence) == []) is holds


@pytest.mark.parametrize("check", ["cells", "failed_cells"])
def test_no_cell_at_all_is_asked_for_by_name_since_at_least_none_always_holds(check):
    with pytest.raises(ValueError, match=rf"{check}\.at_least: input should be greater than 0, found 0"):
        read_expectation({check: 0}, rounds=1)
    assert read_expectation({check: {"at_most": 0}}, rounds=1).arguments == {"at_most": 0}


def test_a_check_without_arguments_may_stand_alone(evidence):
    assert read_expectation("refused", rounds=1).problems(evidence) == []
    with pytest.raises(ValueError, match="number: missing key 'value'"):
        read_expectation("number", rounds=1)


def test_every_check_is_tried():
    assert {next(iter(case[0])) for case in CASES} | {"json", "asked_back"} == set(CHECKS)


def test_a_round_that_was_never_asked_is_a_problem(evidence):
    found = read_expectation({"answer": {"matches": "x", "round": 2}}, rounds=2).problems(evidence)

    assert "expected it to be asked" in found[0]


GOOD = "source: our own\nask: [hello]\nexpect: [{stop: Completed}]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD.replace("ask:", "asks:"), r"scenario\.yaml: .*'asks'; did you mean 'ask'\?"),
        (GOOD.replace("stop", "stopp"), r"scenario\.yaml: .*unknown check 'stopp'; did you mean 'stop'\?"),
        (GOOD.replace("{stop: Completed}", "{number: many}"), r"scenario\.yaml: .*number\.value"),
        (GOOD + "files: [nowhere.csv]\n", r"nowhere\.csv"),
        (GOOD + "settings: {session.max_post: 3}\n", r"session\.max_post'; did you mean"),
        (GOOD.replace("ask: [hello]\n", ""), r"scenario\.yaml: .*ask"),
        (GOOD.replace("[hello]", "hello"), r"scenario\.yaml: ask: input should be a list, found 'hello'"),
        (GOOD.replace("{stop: Completed}", "{json: {schema: {type: strin}}}"), r"json\.schema: .*\$\.type: 'strin'"),
        ("- a\n", r"scenario\.yaml"),
        (GOOD + "when_asked: [{match: key, say: id}]\n", r"when_asked\.0: unknown key 'match'; did you mean 'matches'"),
        (GOOD + "when_asked: [{matches: key}]\n", r"when_asked\.0: missing key 'say'"),
        (GOOD + "when_asked: [{matches: '(', say: id}]\n", r"when_asked\.0\.matches"),
        (GOOD + "limits: {post: 3}\n", r"limits: unknown key 'post'; did you mean 'posts'"),
        (GOOD + "environment: {KEY: 3}\n", r"environment"),
        (GOOD + "learn: ../lessons\n", r"learn: expected the name of a folder beside it, .*found '\.\./lessons'"),
        (GOOD + "learn: '..'\n", r"learn: expected the name of a folder beside it, .*found '\.\.'"),
        (GOOD + "learn: .\n", r"learn: expected the name of a folder beside it, .*found '\.'"),
        (GOOD.replace("{stop: Completed}", "{lesson: slips}"), r"`lesson` is about .*add `learn: lessons`"),
    ],
)
def test_a_wrong_scenario_is_an_error_that_names_file_key_and_neighbour(tmp_path, text, problem):
    (tmp_path / "scenario.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(ScenarioError, match=problem):
        read_scenario(tmp_path)


@pytest.mark.parametrize("key", ["needs", "lacks"])
@pytest.mark.parametrize("name", ["canary.inner", "canary.", ".canary", "canary.__main__.x", "a canary", "../a", ""])
def test_a_module_that_can_only_be_found_by_an_import_is_refused(tmp_path, monkeypatch, key, name):
    (tmp_path / "packages" / "canary").mkdir(parents=True)
    (tmp_path / "packages" / "canary" / "__init__.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    (tmp_path / "scenario.yaml").write_text(f"{GOOD}{key}: [yaml, {name!r}]\n", encoding="utf-8")

    with pytest.raises(ScenarioError, match=rf"{key}\.1: expected a top-level module, such as `sklearn`, got '"):
        read_scenario(tmp_path)

    (tmp_path / "scenario.yaml").write_text(f"{GOOD}{key}: [canary]\n", encoding="utf-8")
    scenario = read_scenario(tmp_path)
    dotted = replace(scenario, needs=("canary.inner",), lacks=())
    assert (scenario.hindrance, dotted.hindrance) == (
        {"needs": "", "lacks": "is about what happens without canary, which is installed here"}[key],
        "",
    )
    assert "canary" not in sys.modules


def test_the_module_that_runs_is_found_though_it_may_have_no_spec(tmp_path):
    (tmp_path / "scenario.yaml").write_text(f"{GOOD}needs: [__main__]\n", encoding="utf-8")

    assert read_scenario(tmp_path).hindrance == ""


def test_a_scenario_is_read(tmp_path):
    (tmp_path / "scenario.yaml").write_text(GOOD, encoding="utf-8")

    scenario = read_scenario(tmp_path)

    assert (scenario.name, list(scenario.ask), scenario.source) == (tmp_path.name, ["hello"], "our own")
