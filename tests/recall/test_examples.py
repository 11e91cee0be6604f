"""Examples: read from TaskWeaver's format, chosen by roles and budget, made out of what was lived."""

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Post, Round, RoundState
from tw_autogen.errors import ConfigError, ConversationFormatError
from tw_autogen.model import LexicalRanker
from tw_autogen.recall import read_examples
from tw_autogen.recall.examples import cleaned_example, select_examples, write_example
from tw_autogen.recall.new_text_files import create_text_file, without_paths

EXAMPLE = """
enabled: True
rounds:
  - user_query: {query}
    state: finished
    post_list:
      - {{message: "{query}", send_from: User, send_to: Planner, attachment_list: []}}
      - message: Here you are.
        send_from: Planner
        send_to: {to}
        attachment_list:
          - {{type: init_plan, content: 1. answer}}
          - {{type: plan, content: 1. answer}}
          - {{type: current_plan_step, content: 1. answer}}
"""


def write(folder, name, query="count the rows", to="User"):
    (folder / name).write_text(EXAMPLE.format(query=query, to=to), encoding="utf-8")


def test_a_folder_is_read_in_order_and_what_is_not_enabled_is_left_out(tmp_path):
    write(tmp_path, "b.yaml", "second")
    write(tmp_path, "a.yaml", "first")
    (tmp_path / "c.yaml").write_text("enabled: false\nrounds: [{user_query: x, state: finished, post_list: []}]\n")
    (tmp_path / "notes.txt").write_text("no example")

    assert [example.requests for example in read_examples(tmp_path)] == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("enabled: true\nround: []\n", r"bad\.yaml: unknown key 'round'; did you mean 'rounds'\?"),
        ("enabled: true\nrounds: []\n", r"bad\.yaml: it has no rounds"),
        ("rounds: [\n", r"bad\.yaml:2: not YAML"),
        ("rounds: [{state: finished, post_list: []}]\nenabled: true\n", r"bad\.yaml: missing key 'user_query'"),
    ],
)
def test_a_malformed_file_is_named(tmp_path, text, problem):
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(ConversationFormatError, match=problem):
        read_examples(tmp_path)


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(ConfigError, match="no such folder of examples"):
        read_examples(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("theirs", "ours"), [("PluginOrchestrator", "CodeInterpreter"), ("CLIAgent", "CommandLine"), ("Echo", "Echo")]
)
def test_taskweavers_roles_have_their_names_here_in_posts_and_words(tmp_path, theirs, ours):
    text = EXAMPLE.format(query="count", to=theirs).replace("1. answer", f"1. ask {theirs} not My{theirs}")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")

    (example,) = read_examples(tmp_path)

    post = example.conversation.rounds[0].posts[1]
    assert post.send_to == ours
    assert {one.content for one in post.attachments} == {f"1. ask {ours} not My{theirs}"}


def test_an_example_in_which_somebody_else_speaks_is_left_out(tmp_path):
    write(tmp_path, "a.yaml", "first")
    write(tmp_path, "b.yaml", "second", to="Echo")
    found = read_examples(tmp_path)

    def fitting(*roles):
        chosen = select_examples(found, ["User", "Planner", *roles], "x", tokens=9999, ranker=LexicalRanker())
        return [one.requests for one in chosen]

    assert fitting() == ["first"]
    assert fitting("Echo") == ["first", "second"]


def test_an_example_for_plugins_only_goes_to_such_an_interpreter_alone(tmp_path):
    write(tmp_path, "a.yaml", "any")
    write(tmp_path, "b.yaml", "only calls")
    file = tmp_path / "b.yaml"
    file.write_text(f"plugin_only: True\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    found = read_examples(tmp_path)

    def fitting(plugin_only):
        who = ["User", "Planner"]
        chosen = select_examples(found, who, "x", tokens=9999, ranker=LexicalRanker(), plugin_only=plugin_only)
        return [one.requests for one in chosen]

    assert (fitting(None), fitting(False), fitting(True)) == (["any", "only calls"], ["any"], ["only calls"])
    assert "plugin_only: true" in found[1].conversation.to_yaml()
    assert "plugin_only" not in found[0].conversation.to_yaml()


def test_where_not_all_fit_the_most_similar_ones_are_taken_in_their_own_order(tmp_path):
    for number, query in enumerate(["fit a regression", "plot a histogram", "join two tables", "draw a bar plot"]):
        write(tmp_path, f"{number}.yaml", query)
    found = read_examples(tmp_path)
    tokens = found[1].tokens + found[3].tokens

    chosen = select_examples(found, ["User", "Planner"], "please plot the sales", tokens=tokens, ranker=LexicalRanker())

    assert [one.requests for one in chosen] == ["plot a histogram", "draw a bar plot"]


def lived():
    kind = AttachmentType
    said = (
        Attachment(kind.plan, "1. look into /data/s1/files/a.csv"),
        Attachment(kind.artifact_paths, "/data/s1/files/x"),
    )
    return [
        Round(
            "what is in a.csv?",
            posts=[
                Post("User", "Planner", "what is in a.csv?\n\na.csv: 3 rows"),
                Post("Planner", "CodeInterpreter", "Look into /data/s1/files/a.csv", said),
                Post(
                    "CodeInterpreter", "Planner", "3 rows; token hunter2hunter2", (Attachment(kind.thought, "I look."),)
                ),
                Post("Planner", "User", "It has 3 rows." + "!" * 9000),
            ],
            state=RoundState.finished,
        ),
        Round("and b.csv?", posts=[Post("User", "Planner", "and b.csv?")], state=RoundState.failed, error="no model"),
    ]


def test_an_example_of_a_session_is_cleaned_and_loads(tmp_path):
    made = cleaned_example(
        lived(), "Planner", private=["/data/s1/files"], mask=lambda text: text.replace("hunter2hunter2", "[secret]")
    )
    write_example(made, tmp_path / "made.yaml")

    text = (tmp_path / "made.yaml").read_text(encoding="utf-8")
    assert "/work" not in text
    assert "artifact_paths" not in text
    assert "token [secret]" in text
    assert "and b.csv?" not in text
    assert "6014 characters left out" in text
    (example,) = read_examples(tmp_path)
    assert [post.message for post in example.conversation.rounds[0].posts][:2] == [
        "what is in a.csv?",
        "Look into a.csv",
    ]


@pytest.mark.parametrize("words", ["it ends \x85", "one\x85two\nthree", "a\u2028b", " \n indented\n\n", "\ttab: #1"])
def test_an_example_keeps_each_sign_of_what_was_said(tmp_path, words):
    posts = [Post("User", "Planner", words), Post("Planner", "User", words)]
    made = cleaned_example([Round(words, posts=posts, state=RoundState.finished)], "Planner")
    write_example(made, tmp_path / "a.yaml")

    (example,) = read_examples(tmp_path)
    assert [post.message for post in example.conversation.rounds[0].posts] == [words, words]


def test_an_example_for_one_role_holds_only_its_posts():
    made = cleaned_example(lived(), "CodeInterpreter")

    assert [(post.send_from, post.send_to) for post in made.rounds[0].posts] == [
        ("Planner", "CodeInterpreter"),
        ("CodeInterpreter", "Planner"),
    ]


@pytest.mark.parametrize(
    ("home", "text", "kept"),
    [
        ("/", "a / b  # km/h, see https://x.org/y", "a / b  # km/h, see https://x.org/y"),
        ("/home/al", "/home/alice/a.csv, /home/al.csv, /home/al-2", "/home/alice/a.csv, /home/al.csv, /home/al-2"),
        ("/home/al", r"file:///home/al/a.csv in /home/al. Or '\n/home/al'", r"a.csv in .. Or '\n.'"),
    ],
)
def test_only_private_folders_are_taken_out_of_a_text(home, text, kept):
    assert without_paths(text, [home]) == kept


@pytest.mark.parametrize("name", ["odd_days", "odd_days.json", "folder.yaml/a.yaml"])
def test_an_example_that_would_not_load_or_cannot_be_written_is_refused(tmp_path, name):
    (tmp_path / "folder.yaml").write_text("a file\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"\*\.yaml or \*\.yml|can't be written"):
        write_example(cleaned_example(lived(), "Planner"), tmp_path / name)


def test_nothing_to_make_an_example_of_is_told_and_no_file_is_replaced(tmp_path):
    with pytest.raises(ConfigError, match="no finished round in which Echo said something"):
        cleaned_example(lived(), "Echo")
    (tmp_path / "there.yaml").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"there\.yaml is there already"):
        write_example(cleaned_example(lived(), "Planner"), tmp_path / "there.yaml")


def test_an_example_is_written_through_no_link(tmp_path):
    (tmp_path / "new.yaml").symlink_to(tmp_path / "elsewhere.yaml")

    with pytest.raises(ConfigError, match=r"new\.yaml can't be written: File exists"):
        create_text_file(tmp_path / "new.yaml", "rounds: []")

    assert not (tmp_path / "elsewhere.yaml").exists()


def test_an_example_is_written_to_no_folder_that_a_link_of_the_current_one_leads_to(tmp_path, monkeypatch):
    for name in ("here", "private"):
        (tmp_path / name).mkdir()
    (tmp_path / "here/examples").symlink_to("../private")
    monkeypatch.chdir(tmp_path / "here")

    with pytest.raises(ConfigError, match=r"examples/new\.yaml can't be written: .*link"):
        create_text_file(tmp_path / "here/examples/new.yaml", "rounds: []")

    assert list((tmp_path / "private").iterdir()) == []
