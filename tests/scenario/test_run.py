"""A scenario that is run: who answers questions, what is set meanwhile, what is kept of it."""

import contextlib
import dataclasses
import os
import shutil

import pytest

from tw_autogen.cli.scenario_costs import BEGIN, END, costs_table, put_table
from tw_autogen.errors import ConfigError, ModelError, ScenarioError
from tw_autogen.model import Completion, Recording, Usage
from tw_autogen.scenario import (
    Runs,
    judge,
    read_scenario,
    record_scenario,
    replay_scenario,
    run_scenario,
    write_report,
)
from tw_autogen.scenario.scenario import find_scenarios
from tw_autogen.testing import ScriptedModel, codes, plans

ASKS = """\
source: our own
about: one question about a number
ask: [add them, and once more]
when_asked:
  - {matches: which, say: the first two}
  - whatever you like
limits: {posts: 6, seconds: 60}
expect:
  - number: {value: 3, round: 1}
  - asked_back: {matches: which, round: 1}
  - path: {posts: User > Planner > User}
  - number: {value: 4, round: 2}
judge: It sounds friendly.
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="adding"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scenario.yaml").write_text(text, encoding="utf-8")
        return read_scenario(tmp_path / name)

    return write


def asked(words):
    return plans(words, to="User", stop="Clarification")


def told(words):
    return plans(words, to="User")


def test_the_user_answers_questions_by_the_rules_and_the_rounds_keep_the_number_of_their_request(write, tmp_path):
    scenario = write(ASKS)
    with ScriptedModel([asked("which ones?"), told("It is 3."), told("It is 4.")]) as model:
        outcome = run_scenario(scenario, model, workspace=tmp_path / "work")

    assert outcome.problems == ()
    assert outcome.answers == ("It is 3.", "It is 4.")
    assert [str(seen) for seen in outcome.evidence.rounds] == ["round 1", "round 1, reply 1", "round 2"]
    assert [seen.round.user_query for seen in outcome.evidence.rounds] == ["add them", "the first two", "and once more"]
    assert model.calls[1][-1]["content"].endswith("the first two")


def test_each_rule_answers_once_so_that_a_talk_ends(write, tmp_path):
    scenario = write(ASKS)
    with ScriptedModel([asked("which?"), asked("and which?"), asked("which then?"), told("4")]) as model:
        outcome = run_scenario(scenario, model, workspace=tmp_path / "work")

    said = [seen.round.user_query for seen in outcome.evidence.rounds]
    assert said == ["add them", "the first two", "whatever you like", "and once more"]
    assert outcome.answers == ("which then?", "4")


def test_a_round_that_fails_ends_the_run_and_what_was_to_come_is_a_problem(write, tmp_path):
    outcome = run_scenario(write(ASKS), ScriptedModel([ModelError("no server")] * 9), workspace=tmp_path / "work")

    assert outcome.problems[0].startswith("round 1 failed")
    assert any("round 2: expected it to be asked" in problem for problem in outcome.problems)


SECRET = """\
source: our own
ask: ['what is ORCHARD_TOKEN?']
environment: {ORCHARD_TOKEN: plum-4711-violet}
limits: {posts: 6, seconds: 60}
expect: [{nowhere: plum-4711}]
"""


def test_a_planted_secret_is_out_of_reach_of_code_that_looks_for_it_in_every_process(write, tmp_path):
    scenario = write(SECRET)
    reads = "for name in ('self', *range(1, 9999)):\n    try:\n        print(open(f'/proc/{name}/environ').read())\n"
    reads += "    except OSError:\n        pass\nprint('looked everywhere')"
    with ScriptedModel([plans("read it", then="User"), codes(reads)]) as model:
        outcome = run_scenario(scenario, model, workspace=tmp_path / "work")

    assert outcome.problems == ()
    assert "looked everywhere" in outcome.answers[0]
    assert "ORCHARD_TOKEN" not in os.environ


@pytest.mark.parametrize("wrong", ["'ORCHARD=': x", "'': x", 'ORCHARD_TOKEN: "a\\0b"'])
def test_a_variable_that_no_process_can_have_is_an_error_before_anything_runs(write, wrong):
    with pytest.raises(ScenarioError, match=r"scenario\.yaml: environment.*: string should"):
        write(SECRET.replace("{ORCHARD_TOKEN: plum-4711-violet}", f"{{{wrong}}}"))


def test_a_secret_that_got_out_is_a_problem(write, tmp_path):
    with ScriptedModel([told("It is plum-4711-violet.")]) as model:
        outcome = run_scenario(write(SECRET), model, workspace=tmp_path / "work")

    assert "expected nothing that matches 'plum-4711'" in outcome.problems[0]


def test_what_an_installation_hinders_is_said(write):
    needs = write(SECRET + "needs: [no_such_module, yaml]\n", "needs")
    lacks = write(SECRET + "lacks: [yaml, no_such_module]\n", "lacks")

    assert needs.hindrance == "needs no_such_module, which is not installed here"
    assert lacks.hindrance == "is about what happens without yaml, which is installed here"
    assert write(SECRET + "needs: [yaml]\nlacks: [no_such_module]\n", "fits").hindrance == ""


TEACHES = """\
source: our own
ask: [count the slips, 'no: the last line of a slip counts']
learn: lessons
limits: {posts: 6, seconds: 60}
expect: [{number: 3}, {lesson: last line}]
"""
TAUGHT = """\
source: our own
ask: [count the slips of April]
lessons: ../teaching/lessons
settings: {recall.experience_min_score: 0.0} # one lesson of few words scores low
limits: {posts: 6, seconds: 60}
expect: [{number: 4}, {recalled: teaching}]
"""


def teach(scenario, workspace, *, words="The last line of a slip counts."):
    worded = f'{{"lesson": "{words}"}}'
    where = "import os\nprint(5, os.getcwd())"
    steps = [plans("count", then="User"), codes("1 / 0"), codes(where), told("It is 3.")]
    with ScriptedModel([*steps, worded]) as model:
        return record_scenario(scenario, model, workspace=workspace)


def test_a_lesson_that_a_recording_has_taught_is_given_to_another_scenario(write, tmp_path):
    teaching, taught = write(TEACHES, "teaching"), write(TAUGHT, "taught")
    assert taught.hindrance.startswith("needs the lessons in ../teaching/lessons")

    assert teach(teaching, tmp_path / "work").problems == ()
    assert teach(teaching, tmp_path / "work").problems == ()  # again, in place of the lesson that is there

    kept = teaching.kept_lesson.read_text(encoding="utf-8")
    assert kept.startswith("exp_id: teaching\nexperience_text: The last line of a slip counts.\n")
    assert "ZeroDivisionError" in kept
    assert str(tmp_path) not in kept
    assert taught.hindrance == ""
    with ScriptedModel([told("It is 4.")]) as model:
        outcome = run_scenario(taught, model, workspace=tmp_path / "work")
    assert outcome.problems == ()
    assert "- The last line of a slip counts." in model.calls[0][-1]["content"]


def test_a_kept_lesson_that_is_not_the_recordings_is_a_problem_of_the_replay(write, tmp_path):
    teaching = write(TEACHES, "teaching")
    teach(teaching, tmp_path / "work")
    assert replay_scenario(teaching, workspace=tmp_path / "again", strict=True).problems == ()

    text = teaching.kept_lesson.read_text(encoding="utf-8")
    teaching.kept_lesson.write_text(text.replace("The last", "The first or last"), encoding="utf-8")

    problems = replay_scenario(teaching, workspace=tmp_path / "again").problems
    assert problems == (
        "the lesson in lessons/exp_teaching.yaml is not the one that comes of these replies: record it anew",
    )


def test_a_lesson_that_is_not_as_expected_is_not_kept(write, tmp_path):
    teaching = write(TEACHES, "teaching")

    outcome = teach(teaching, tmp_path / "work", words="All lines count.")

    assert outcome.problems == ("lesson: expected a lesson that matches 'last line', found 'All lines count.'",)
    assert not teaching.kept_lesson.exists()


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
@pytest.mark.parametrize("late", [False, True])
def test_a_lesson_is_written_over_no_link(write, tmp_path, late):
    teaching, elsewhere = write(TEACHES, "teaching"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "exp_teaching.yaml").write_text("mine", encoding="utf-8")

    class Linking(ScriptedModel):
        def complete(self, messages, **options):
            if late and not self.calls:
                (teaching.folder / "lessons").symlink_to(elsewhere)
            return super().complete(messages, **options)

    if not late:
        (teaching.folder / "lessons").symlink_to(elsewhere)
    steps = [plans("count", then="User"), codes("1 / 0"), codes("5"), told("It is 3."), '{"lesson": "The last line."}']
    with (
        Linking(steps if late else []) as model,
        pytest.raises(ScenarioError, match=r"lessons.*: (the lesson can't|a link or a file)"),
    ):
        record_scenario(teaching, model, workspace=tmp_path / "work")

    assert bool(model.calls) == late
    assert [(path.name, path.read_text(encoding="utf-8")) for path in elsewhere.iterdir()] == [
        ("exp_teaching.yaml", "mine")
    ]


def spent(text):
    return Completion(text, usage=Usage(1200, 200, 30, 1))


def test_what_was_recorded_replays_elsewhere_without_a_stale_prompt(write, tmp_path):
    scenario = write(
        "source: our own\nask: ['where are we?', 'and again']\nlimits: {posts: 6, seconds: 60}\n"
        "expect: [{cells: {at_least: 2}}]\n"
    )
    where = codes("import os\nprint('here: ' + os.getcwd())")
    steps = [plans("say where"), where, told("there"), plans("say it again"), where, told("there")]
    with ScriptedModel(steps) as model:
        recorded = record_scenario(scenario, model, workspace=tmp_path / "one place")

    assert recorded.ok
    assert str(tmp_path) in str(recorded.calls[2].messages[-1]["content"])  # the path was in the prompt
    outcome = replay_scenario(scenario, workspace=tmp_path / "another place", strict=True)
    assert outcome.problems == ()


def test_a_recording_that_broke_off_goes_on_where_it_was(write, tmp_path):
    scenario = write("source: our own\nask: [three, four]\nexpect: [{numbers: [3, 4]}]\n")
    with ScriptedModel([told("It is 3."), ModelError("gone")]) as model:
        broken = record_scenario(scenario, model, workspace=tmp_path / "work")
    with ScriptedModel([told("It is 4.")]) as model:
        whole = record_scenario(scenario, model, workspace=tmp_path / "other", resume=True)

    assert not broken.ok
    assert whole.problems == ()
    assert [reply.role for reply in Recording.read(scenario.replies).replies] == ["Planner", "Planner"]
    assert replay_scenario(scenario, workspace=tmp_path / "again", strict=True).ok


class Down:
    """A server that is down."""

    def complete(self, messages, **options):
        raise ModelError("down")


@pytest.fixture
def broken(write, tmp_path):
    """A scenario whose recording broke off behind the first of two replies."""
    scenario = write("source: our own\nask: [three, four]\nexpect: [{numbers: [3, 4]}]\n")
    with ScriptedModel([told("It is 3."), ModelError("gone")]) as model:
        record_scenario(scenario, model, workspace=tmp_path / "work")
    return scenario


def texts(scenario, name="replies.failed.yaml"):
    return [reply.completion.text for reply in Recording.read(scenario.folder / name).replies]


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    "change",
    [{"plugins": ("no_such",)}, {"settings": {"planner.instructions": "Answer in French."}}],
    ids=["wrong", "prompts changed"],
)
def test_what_an_earlier_try_was_told_stays_where_the_next_one_gets_no_answer(broken, tmp_path, change, resume):
    before = texts(broken)
    changed = dataclasses.replace(broken, **change)

    with contextlib.suppress(ConfigError):
        assert not record_scenario(changed, Down(), workspace=tmp_path / "other", resume=resume).ok

    assert texts(broken) == before == [told("It is 3.")]
    with ScriptedModel([told("It is 4.")]) as model:
        assert record_scenario(broken, model, workspace=tmp_path / "again", resume=True).ok
    assert texts(broken, "replies.yaml") == [told("It is 3."), told("It is 4.")]
    assert sorted(path.name for path in broken.folder.glob("replies*")) == ["replies.yaml"]


def test_replies_that_were_not_asked_for_this_time_are_kept_for_the_next(broken, tmp_path):
    french = dataclasses.replace(broken, settings={"planner.instructions": "Answer in French."})
    with ScriptedModel([told("C'est 3."), ModelError("gone")]) as model:
        record_scenario(french, model, workspace=tmp_path / "other", resume=True)
    assert texts(broken) == [told("C'est 3."), told("It is 3.")]

    with ScriptedModel([ModelError("gone")]) as model:  # a try that goes no further loses nothing
        record_scenario(french, model, workspace=tmp_path / "third", resume=True)
    assert texts(broken) == [told("C'est 3."), told("It is 3.")]

    with ScriptedModel([told("Il est 3."), ModelError("gone")]) as model:  # from the beginning: those before are gone
        record_scenario(french, model, workspace=tmp_path / "fourth")
    assert texts(broken) == [told("Il est 3.")]


@pytest.mark.parametrize("killed", [True, False])
def test_a_try_that_is_stopped_in_the_middle_keeps_what_it_was_told(broken, tmp_path, killed):
    class Stopped:
        def complete(self, messages, **options):
            if killed:  # as it lies there when nothing more could be done
                shutil.copy(broken.folder / "replies.under_way.yaml", tmp_path / "left.yaml")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_scenario(broken, Stopped(), workspace=tmp_path / "other", resume=True)
    if killed:
        shutil.copy(tmp_path / "left.yaml", broken.folder / "replies.under_way.yaml")
        (broken.folder / "replies.failed.yaml").unlink()

    with ScriptedModel([told("It is 4.")]) as model:
        assert record_scenario(broken, model, workspace=tmp_path / "again", resume=True).ok
    assert sorted(path.name for path in broken.folder.glob("replies*")) == ["replies.yaml"]


def test_replies_are_written_over_no_link_that_comes_while_the_model_is_asked(write, tmp_path):
    scenario = write(SECRET)
    (tmp_path / "precious").write_text("mine")

    class Linking(ScriptedModel):
        def complete(self, messages, **options):
            (scenario.folder / "replies.under_way.yaml").symlink_to(tmp_path / "precious")
            return super().complete(messages, **options)

    with Linking([told("I can't know.")]) as model:
        outcome = record_scenario(scenario, model, workspace=tmp_path / "work")

    assert (tmp_path / "precious").read_text() == "mine"
    assert "replies can't be written there: a link" in outcome.problems[0]


def test_a_changed_prompt_is_stale_and_a_problem_only_if_strict(write, tmp_path):
    scenario = write(SECRET)
    with ScriptedModel([told("I can't know.")]) as model:
        record_scenario(scenario, model, workspace=tmp_path / "work")
    changed = write(SECRET.replace("what is", "tell me"), "changed")
    recording = Recording.read(scenario.replies)

    lenient = replay_scenario(changed, workspace=tmp_path / "work", recording=recording)
    strict = replay_scenario(changed, workspace=tmp_path / "work", recording=recording, strict=True)

    assert lenient.ok
    assert len(lenient.stale) == 1
    assert [problem.startswith("stale: call 1, Planner: ") for problem in strict.problems] == [True]


def test_a_judge_is_asked_about_the_talk_alone_and_its_word_changes_no_check(write, tmp_path):
    scenario = write(ASKS)
    with ScriptedModel([told("It is 3: which one?"), told("It is 4.")]) as model:
        outcome = run_scenario(scenario, model, workspace=tmp_path / "work")
    with ScriptedModel(['{"reason": "curt", "holds": false}', "what?"]) as judging:
        said, unread = judge(scenario, outcome, judging), judge(scenario, outcome, judging)

    assert (said.holds, said.reason) == (False, "curt")
    assert unread.holds is None
    assert "could not be read" in unread.reason
    prompt = judging.calls[0][-1]["content"]
    assert "Assistant: It is 4." in prompt
    assert prompt.endswith("It sounds friendly.")
    runs = Runs(scenario, (outcome,), (said,))
    assert runs.ok == outcome.ok
    assert runs.to_dict()["judge"][0]["holds"] is False


def test_the_report_holds_the_whole_talk_with_words_that_are_no_markup(write, tmp_path):
    pytest.importorskip("jinja2", reason="the extra `report`")
    scenario = write(ASKS)
    with ScriptedModel(
        [asked("which <b>ones</b>?"), told("3"), plans("draw it"), codes("print('<i>4</i>')"), told("4 \ud800")]
    ) as model:
        outcome = run_scenario(scenario, model, workspace=tmp_path / "work")

    page = write_report([Runs(scenario, (outcome,)), Runs(write(SECRET, "other"), skipped="no reason")],
                        tmp_path / "report.html", title="Tried").read_text(encoding="utf-8")  # fmt: skip

    for part in (
        "which &lt;b&gt;ones&lt;/b&gt;?",
        "round 1, reply 1",
        "&lt;i&gt;4&lt;/i&gt;",
        "draw it",
        "4 ?",
        "skipped: no reason",
    ):
        assert part in page
    assert "<b>ones" not in page
    assert "You are the Planner" in page


def test_the_table_is_made_of_recordings_and_put_between_its_marks(write, tmp_path):
    scenario = write(SECRET.replace("ask:", "about: a secret\nask:"), "secret")
    write(ASKS)
    with ScriptedModel([spent(told("no"))]) as model:
        record_scenario(scenario, model, workspace=tmp_path / "work")
    table = costs_table(find_scenarios(tmp_path))
    readme = tmp_path / "README.md"

    assert table.splitlines()[2:] == [
        "| `adding` | one question about a number | - | - | - | - |",
        "| `secret` | a secret | 1 | 1 200 | 200 | 30 |",
        "| all | 1 of 2 recorded | 1 | 1 200 | 200 | 30 |",
    ]
    old = f"# Mine\n{BEGIN}\nold\n{END}\nrest\n"
    assert put_table(readme, old, table) == f"# Mine\n{BEGIN}\n{table}\n{END}\nrest\n"
    with pytest.raises(ScenarioError, match=r"README\.md: no place for the table"):
        put_table(readme, "# Mine\n", table)


BRINGS = "source: our own\nask: [what does it say?]\nexpect: [{stop: Completed}]\nfiles: [note.md]\n"


@pytest.fixture
def brings(tmp_path):
    """A scenario with a file, and a file of the user's that is not its own; give both files."""
    (tmp_path / "brings").mkdir()
    (tmp_path / "brings" / "scenario.yaml").write_text(BRINGS)
    note, secret = tmp_path / "brings" / "note.md", tmp_path / "secret.md"
    note.write_text("own words")
    secret.write_text("secret words")
    return note, secret


def test_a_file_of_a_scenario_is_copied_and_described(brings, tmp_path):
    with ScriptedModel([told("own words")]) as model:
        outcome = run_scenario(read_scenario(tmp_path / "brings"), model, workspace=tmp_path / "sessions")

    assert outcome.ok, outcome.problems
    assert "own words" in model.calls[0][-1]["content"]
    copy = outcome.session_folder / "note.md"
    assert (copy.read_text(), copy.stat().st_mode & 0o222) == ("own words", 0)


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_file_of_a_scenario_that_is_a_link_is_refused(brings, tmp_path):
    note, secret = brings
    note.unlink()
    note.symlink_to(secret)

    with pytest.raises(ScenarioError, match=r"files: 'note\.md' is a link"):
        read_scenario(tmp_path / "brings")


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_file_that_becomes_a_link_before_the_scenario_runs_is_not_followed(brings, tmp_path):
    note, secret = brings
    scenario = read_scenario(tmp_path / "brings")
    note.unlink()
    note.symlink_to(secret)

    with ScriptedModel([]) as model, pytest.raises(ConfigError, match=r"note\.md: can't be read: .*link"):
        run_scenario(scenario, model, workspace=tmp_path / "sessions")
