"""Lessons: gathered from rounds, worded by a model, kept as files, found again."""

import os

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Plan, Post, Round, RoundState
from tw_autogen.errors import ConfigError, ConversationFormatError
from tw_autogen.model import LexicalRanker
from tw_autogen.recall import Experience, read_experiences
from tw_autogen.recall.experience_writer import distill
from tw_autogen.recall.experiences import collect_experience, select_experiences, write_experience
from tw_autogen.testing import ScriptedModel

K = AttachmentType


def ran(code, status="SUCCESS", result="", wrong=()):
    attachments = (
        Attachment(K.reply_content, code),
        Attachment(K.execution_status, status, {"went_wrong": list(wrong)}),
        Attachment(K.execution_result, result),
    )
    return Post("CodeInterpreter", "Planner", "…", attachments)


def test_what_happened_is_gathered():
    posts = [
        Post("User", "Planner", "mean of sales?"),
        Post("Planner", "CodeInterpreter", "load", plan=Plan.parse("1. load\n2. mean")),
        ran("read(1)", "FAILURE", "FileNotFoundError: 1"),
        ran("mean()", wrong=["KeyError: 'sale'"]),
    ]
    lived = collect_experience([Round("mean of sales?", posts=posts, state=RoundState.finished)])

    assert (lived.outcome, lived.request, lived.plan, lived.code) == (
        *("succeeded", "mean of sales?", "1. load\n2. mean", "mean()"),
    )
    assert set(lived.went_wrong) == {"FileNotFoundError: 1", "KeyError: 'sale'"}


@pytest.mark.parametrize("stop", ["Clarification", "AdditionalInformation"])
def test_a_lesson_is_told_what_the_user_was_asked_and_answered_however_long_the_request_was(stop):
    asks = Post("Planner", "User", "Net or\ngross?", (Attachment(K.stop, stop),))
    answers = Post("Planner", "User", "It is 3. Anything else?", (Attachment(K.stop, "Completed"),))
    lived = collect_experience(
        [
            Round(f"sum of sales {'x' * 5000}", posts=[asks]),
            Round("net, without returns", posts=[answers]),
            Round("no"),
        ]
    )

    assert "(asked: Net or gross?)\nanswered: net, without returns\nno" in lived.request
    with ScriptedModel(['{"lesson": "Ask whether sums are net."}']) as model:
        distill(lived, model)
    assert "(asked: Net or gross?)\nanswered: net, without returns" in model.calls[0][-1]["content"]


def test_a_failed_round_is_experience_as_well():
    lived = collect_experience([Round("x", state=RoundState.failed, error="no answer in 5 seconds")])

    assert (lived.outcome, lived.went_wrong) == ("failed", ("no answer in 5 seconds",))


def test_without_a_round_there_is_nothing_to_learn():
    with pytest.raises(ConfigError, match="no round yet"):
        collect_experience([])


def test_a_model_words_the_lesson_and_is_asked_again_where_it_sends_none(tmp_path):
    lived = Experience("a1", "", "failed", "mean of sales?", "1. load", "mean()", ("KeyError: 'sale'",))
    with ScriptedModel(["no idea", '{"lesson": "The column is called sales."}']) as model:
        learnt = distill(lived, model)

    told = model.calls[0][1]["content"]
    for words in ("mean of sales?", "failed", "1. load", "mean()", "- KeyError: 'sale'"):
        assert words in told
    path = write_experience(learnt, tmp_path)
    assert read_experiences(tmp_path) == (learnt,)
    assert "experience_text: The column is called sales." in path.read_text(encoding="utf-8")


def test_handcrafted_lessons_and_those_of_taskweaver_lie_in_the_same_folder(tmp_path):
    (tmp_path / "handcrafted_exp_7.yaml").write_text("exp_id: '7'\nexperience_text: Ask for the unit.\n")
    (tmp_path / "exp_x.yaml").write_text(
        "exp_id: x\nexperience_text: Sort by date first.\nraw_experience_path: raw_exp_x.yaml\n"
        "embedding_model: e\nembedding: [0.1, 0.2]\n"
    )
    (tmp_path / "raw_exp_x.yaml").write_text("enabled: true\nrounds: []\n")
    (tmp_path / "exp_y.yaml").touch()  # another session is about to write it

    assert [(experience.id, experience.lesson) for experience in read_experiences(tmp_path)] == [
        ("x", "Sort by date first."),
        ("7", "Ask for the unit."),
    ]


@pytest.mark.parametrize(
    ("names", "warning"),
    [
        (["raw_exp_a.yaml"], "1 raw experience is (raw_exp_a.yaml) not read"),
        (["raw_exp_a.yaml", "raw_exp_b.yml"], "2 raw experiences are (raw_exp_a.yaml, …) not read"),
        (["raw_exp_a.yaml", "exp_a.yaml"], ""),
        (["notes_raw_exp_a.yaml"], ""),
    ],
)
def test_raw_experience_of_which_there_is_no_lesson_is_a_warning(tmp_path, caplog, names, warning):
    for name in names:
        (tmp_path / name).touch()

    assert read_experiences(tmp_path) == ()
    assert warning in caplog.text
    assert bool(warning) == bool(caplog.records)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("experience: x\n", r"exp_1\.yaml: unknown key 'experience'; did you mean 'experience_text'\?"),
        ("exp_id: 1\n", r"exp_1\.yaml: `experience_text` is missing or no text"),
        ("- a\n", r"exp_1\.yaml: expected keys and values, found list"),
        ("experience_text: x\nwent_wrong: y\n", r"exp_1\.yaml: `went_wrong` must be a list"),
    ],
)
def test_a_malformed_lesson_is_named(tmp_path, text, problem):
    (tmp_path / "exp_1.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(ConversationFormatError, match=problem):
        read_experiences(tmp_path)


def test_more_lessons_than_are_read_in_a_moment_are_an_error(tmp_path):
    for number in range(60):
        (tmp_path / f"exp_{number}.yaml").write_text("experience_text: x\n", encoding="utf-8")
        os.truncate(tmp_path / f"exp_{number}.yaml", 100_000)

    with pytest.raises(ConfigError, match=r"6\.0 MB of experiences, and at most 5 MB are read; keep the best"):
        read_experiences(tmp_path)


def test_more_lessons_than_can_be_ranked_in_a_moment_are_an_error(tmp_path):
    for number in range(2001):
        (tmp_path / f"exp_{number}.yaml").write_text("experience_text: x\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="2001 experiences, and at most 2000 are read; keep the best"):
        read_experiences(tmp_path)


def test_only_lessons_that_fit_are_recalled_and_no_more_than_asked_for():
    lessons = [
        Experience("1", "Parse dates with dayfirst=True.", request="plot revenue by month"),
        Experience("2", "Scale before k-means.", request="cluster the customers"),
        Experience("3", "Months are written in German.", request="sum revenue of each month"),
    ]

    def found(request, **options):
        chosen = select_experiences(
            lessons, request, ranker=LexicalRanker(), **{"min_score": 0.0, "top_k": 3, **options}
        )
        return [one.id for one in chosen]

    assert set(found("revenue per month")) == {"1", "3"}
    assert len(found("revenue per month", top_k=1)) == 1
    assert found("revenue per month", min_score=99.0) == []
    assert found("tell me a joke") == []
