"""What was said: posts, rounds, boards, memory, and their files."""

import pytest
import yaml

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round, RoundState
from tw_autogen.conversation.memory import wrap_temporal
from tw_autogen.errors import ConversationFormatError
from tw_autogen.recall import read_conversation
from tw_autogen.recall.conversation_files import Conversation

EXAMPLE = """\
enabled: True
rounds:
  - user_query: how many rows has /data/counts.csv?
    state: created
    post_list:
      - message: how many rows has /data/counts.csv?
        send_from: User
        send_to: Planner
        attachment_list:
      - message: load /data/counts.csv and count its rows
        send_from: Planner
        send_to: CodeInterpreter
        attachment_list:
          - type: init_plan
            content: |-
              1. load the file
              2. count its rows <sequentially depends on 1>
          - type: plan
            content: 1. load the file and count its rows
          - type: current_plan_step
            content: 1. load the file and count its rows
"""


def talk() -> Round:
    here = Round("add")
    here.posts += [
        Post("User", "Planner", "add 1 and 2"),
        Post("Planner", "CodeInterpreter", "1 + 2", (Attachment(AttachmentType.plan, "1. add"),)),
        Post(
            "CodeInterpreter",
            "Planner",
            "3",
            (
                Attachment(
                    AttachmentType.artifact_paths,
                    "a.txt",
                    [{"name": "a.txt", "kind": "file", "path": "/x/a.txt", "preview": ""}],
                ),
            ),
        ),
        Post("Planner", "User", "It is 3."),
    ]
    return here


def test_an_example_in_taskweavers_form_loads(tmp_path):
    path = tmp_path / "counts.yaml"
    path.write_text(EXAMPLE, encoding="utf-8")

    example = read_conversation(path)

    assert example.roles == {"User", "Planner", "CodeInterpreter"}
    assert example.rounds[0].posts[1].content(AttachmentType.plan) == "1. load the file and count its rows"
    assert example.rounds[0].state is RoundState.created


def test_a_round_comes_back_from_yaml_as_it_went_with_ids_board_and_error(tmp_path):
    here = talk()
    here.write_board("Planner", "1. add")
    here.state, here.error = RoundState.failed, "no model"
    path = tmp_path / "saved.yaml"
    path.write_text(Conversation((here,)).to_yaml(), encoding="utf-8")

    assert read_conversation(path).rounds == (here,)


def test_json_is_read_as_well(tmp_path):
    path = tmp_path / "saved.json"
    path.write_text('{"enabled": true, "rounds": []}', encoding="utf-8")

    assert read_conversation(path).rounds == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rounds: []", r"bad\.yaml: missing key 'enabled'"),
        ("enabled: true\nrouns: []", r"bad\.yaml: unknown key 'rouns'; did you mean 'rounds'\?"),
        ("enabled: true\nrounds: [{user_query: a, state: over, post_list: []}]", r"'over' is not a valid RoundState"),
        (EXAMPLE.replace("type: plan\n", "type: python\n"), r"bad\.yaml: .*'python' is a type that TaskWeaver gave up"),
        (EXAMPLE.replace("type: plan\n", "type: pan\n"), r"bad\.yaml: the attachment type 'pan' is unknown"),
        ("- a\n- b", r"bad\.yaml: expected keys and values, found list"),
        ("enabled: [", r"bad\.yaml:1: not YAML"),
        ("enabled: true\nrounds: [3]", r"bad\.yaml: .*int"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_an_error_that_names_it(tmp_path, text, problem):
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConversationFormatError, match=problem):
        read_conversation(path)


def test_the_board_keeps_one_bulletin_a_role_and_the_newest_wins():
    here = Round("q")
    here.write_board("Planner", "old")
    here.write_board("Planner", "new")
    here.write_board("Reader", "instructions")

    assert here.read_board() == {"Planner": "new", "Reader": "instructions"}
    assert here.read_board("Planner") == "new"
    assert here.read_board("Nobody") is None


def test_what_is_read_from_the_board_is_a_copy():
    here = Round("q")
    here.read_board()["Planner"] = "smuggled"

    assert here.read_board() == {}


def test_a_role_sees_the_posts_that_it_wrote_or_received():
    memory = Memory.of("CodeInterpreter", [talk()])

    assert [post.message for post in memory.rounds[0].posts] == ["1 + 2", "3"]
    assert memory.last_post.message == "3"


def test_memory_is_a_copy_so_that_a_role_cannot_rewrite_the_round():
    here = talk()
    seen = Memory.of("Planner", [here]).rounds[0]
    seen.posts.clear()
    seen.write_board("Planner", "x")

    assert len(here.posts) == 4
    assert here.read_board() == {}


def test_a_failed_round_stays_visible_with_its_reason():
    failed = Round("first", posts=[Post("User", "Planner", "first")], state=RoundState.failed, error="no model")

    memory = Memory.of("Planner", [failed, Round("second")])

    assert memory.rounds[0].posts[0].message == "first"
    assert memory.rounds[0].error == "no model"


def test_temporal_text_is_seen_in_the_last_round_only():
    rounds = [Round("q", posts=[Post("Reader", "Planner", f"page {wrap_temporal('long text')} end")]) for _ in range(2)]

    old, new = Memory.of("Planner", rounds).rounds

    assert old.posts[0].message == "page  end"
    assert new.posts[0].message == "page long text end"


def test_temporal_text_that_is_never_closed_stays():
    text = f"a {wrap_temporal('b')} c {{{{DELIMITER_START_TEMPORAL}}}}d"

    (seen,) = Memory.of("Planner", [Round("q", posts=[Post("Reader", "Planner", text)])]).rounds

    assert seen.posts[0].message == "a b c {{DELIMITER_START_TEMPORAL}}d"


def test_a_role_that_never_spoke_has_no_last_post():
    with pytest.raises(LookupError, match="Echo has neither written nor received a post yet"):
        _ = Memory.of("Echo", [talk()]).last_post


def test_the_yaml_keeps_words_readable():
    text = Conversation((Round("wie groß?"),)).to_yaml()

    assert "wie groß?" in text
    assert list(yaml.safe_load(text)) == ["id", "enabled", "plugins", "roles", "rounds"]


FORWARDED = Attachment(AttachmentType.stop, "Completed", {"forwarded": True})
LOOKED = Attachment(AttachmentType.execution_status, "NONE", {"looked": 1})
IN_WORDS = Attachment(AttachmentType.reply_type, "text")
RAN = Attachment(AttachmentType.reply_type, "python")


@pytest.mark.parametrize(
    ("attachments", "own"),
    [
        ((Attachment(AttachmentType.stop, "Completed"),), True),
        ((IN_WORDS, Attachment(AttachmentType.execution_status, "NONE")), True),
        ((FORWARDED,), False),
        ((IN_WORDS, LOOKED), False),
        ((RAN, Attachment(AttachmentType.reply_content, "print(1)")), False),
        ((), False),
    ],
    ids=["a Planner's", "an answer in words", "forwarded", "with what a look has shown", "a report", "a role's"],
)
def test_only_what_a_model_alone_has_worded_keeps_its_blocks_in_a_chat(attachments, own):
    here = Round("q", posts=[Post("Planner", "User", "see\n```sh\nid\n```", attachments)])

    assert here.last_words == ("see\n```sh\nid\n```" if own else "see\n`` `sh\nid\n`` `")
