"""A model that may call plugins and do nothing else: by tool calls, or by code that holds nothing but calls."""

import json

import pytest

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings, verify
from tw_autogen.code_interpreter.policy import POLICIES
from tw_autogen.conversation import AttachmentType
from tw_autogen.errors import ConfigError
from tw_autogen.model import Completion, ToolCall
from tw_autogen.planner import Planner
from tw_autogen.plugin import Parameter, PluginSpec, callable_plugin
from tw_autogen.session import Session, open_session, read_settings
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

ONLY = POLICIES["plugins-only"]
PLUGINS = ("double", "mark")


@pytest.mark.parametrize(
    "code",
    [
        "double(3)",
        "x = double(-3.5)\nx",
        "double(+3)",
        "a, (b, c) = double([1, {'k': (None, True)}])\nmark(a, *b, key=c, **{'d': 'text'})",
        "x = double(double(2))  # a comment\nx, 'text'",
        "pass",
        "",
    ],
)
def test_calls_literals_and_variables_pass(code):
    assert verify(code, ONLY, plugins=PLUGINS) == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import random", "an import is neither"),
        ("print(double(3))", "'print' is none of the plugins that may be called here"),
        ("[random() for _ in range(10)]", "a comprehension is neither"),
        ("x = double(3) + 1", "a computation is neither"),
        ("x = double(3).real", "an attribute or method is neither"),
        ("double(3)[0]", "an index is neither"),
        ("f'{double(3)}'", "a formatted text is neither"),
        ("(lambda: 1)()", "'this' is none of the plugins"),
        ("for x in [1]:\n    double(x)", "a loop is neither"),
        ("def f(): pass", "a definition is neither"),
        ("double = 3", "'double' is a plugin and may not be replaced"),
        ("mark(double)", "'double' is a plugin that is not called"),
        ("mark(eval)", "'eval' is no variable"),
        ("mark(__builtins__)", "'__builtins__' is no variable"),
        ("mark(os)", "'os' is no variable"),
        ("print = 1", "'print' is no name for a variable here"),
        ("x.y = double(3)", "an attribute or method is neither"),
        ("x += 1", "`x += 1` is neither"),
        ("!ls", "is none of the plugins that may be called here"),
        ("%time double(3)", "is none of the plugins that may be called here"),
        ("x = (y := double(3))", "is neither a call of a plugin"),
        ("await double(3)", "is neither a call of a plugin"),
        ("ｅval('1')", "'eval' is none of the plugins"),
    ],
)
def test_all_else_is_refused_with_the_line_and_what_may_be_called(code, message):
    (found,) = verify(f"a = double(1)\n{code}", ONLY, plugins=PLUGINS)

    assert message in found.message
    assert (found.kind, found.line) == ("plugin", 2 if "\n" not in code else 2)
    assert (
        found.message.startswith(("'print' is no name", "'double' is a plugin and")) or "double, mark" in found.remedy
    )


def test_deep_nesting_ends_in_a_finding_or_none():
    for code in ("double(" * 80 + "1" + ")" * 80, "x = " + "[" * 5000):
        assert all(one.line == 1 for one in verify(code, ONLY, plugins=PLUGINS))


def spec(name="double", *, only=False, kind="float"):
    made = callable_plugin(
        lambda x: 2 * x,
        name=name,
        description="Twice as much.",
        parameters=[Parameter("x", kind, required=True, description="a number")],
        returns=[Parameter("y", "float")],
    )
    return PluginSpec(**{**made.__dict__, "plugin_only": only})


def calls(*asked):
    made = tuple(ToolCall(f"c{i}", name, json.dumps(given)) for i, (name, given) in enumerate(asked))
    return Completion("", made, finish_reason="tool_calls")


def interpreter(script, run, tmp_path, plugins=None):
    return CodeInterpreter(script, FakeKernel(run, folder=tmp_path), plugins=plugins or [spec()], policy=ONLY)


def ask(role, planner_script, request="double 21"):
    with Session([Planner(planner_script, [role]), role]) as session:
        return session.ask(request), session


def test_tool_calls_become_code_that_is_checked_run_and_reported(tmp_path):
    ran = []

    def run(code):
        ran.append(code)
        return "(42.0, 2.0)"

    with (
        ScriptedModel([calls(("double", {"x": 21}), ("double", {"x": True}))]) as coder,
        ScriptedModel([plans("double 21 and True"), plans("42 and 2.", to="User")]) as planner,
    ):
        answer, session = ask(interpreter(coder, run, tmp_path), planner)

    assert answer.text == "42 and 2."
    assert ran == ["r0 = double(x=21)\nr1 = double(x=True)\nr0, r1"]
    (tool,) = coder.tools[0]
    assert tool["function"]["name"] == "double"
    assert tool["function"]["parameters"]["required"] == ["x"]
    assert session.rounds[-1].posts[2].content(AttachmentType.execution_status) == "SUCCESS"


def test_bare_results_are_worded_by_the_planner_even_if_it_wanted_them_passed_on(tmp_path):
    with (
        ScriptedModel([calls(("double", {"x": 21}))]) as coder,
        ScriptedModel([plans("double 21", then="User"), plans("It is 42.", to="User")]) as planner,
    ):
        answer, _ = ask(interpreter(coder, lambda code: "42.0", tmp_path), planner)

    assert answer.text == "It is 42."
    assert "print" not in coder.calls[0][-1]["content"]


def test_what_was_called_stays_in_the_talk_as_code(tmp_path):
    with (
        ScriptedModel([calls(("double", {"x": 1})), "Nothing more."]) as coder,
        ScriptedModel([plans("a"), plans("b"), plans("c", to="User")]) as planner,
    ):
        ask(interpreter(coder, lambda code: "2.0", tmp_path), planner)

    assert coder.calls[1][-2] == {"role": "assistant", "content": "```python\nr0 = double(x=1)\nr0\n```"}
    assert all(one["role"] != "tool" for one in coder.calls[1])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (calls(("tripple", {"x": 1})), "there is no tool 'tripple'; there are double"),
        (Completion("", (ToolCall("c", "double", "{x: 1"),)), "the arguments of double are no JSON"),
        *(
            (
                Completion("", (ToolCall("c", "double", f'{{"x": {"[" * deep}{"]" * deep}}}'),)),
                "the arguments of double are no JSON",
            )
            for deep in (900, 100_000)
        ),
        (Completion("", (ToolCall("c", "double", "[1]"),)), "the arguments of double are no JSON object"),
        (calls(("double", {"x y": 1})), "double has no argument 'x y'"),
        (calls(("double", {"from": 1})), "double has no argument 'from'"),
        *(
            (Completion("", (ToolCall("c", "double", f'{{"x": {number}}}'),)), f"must be finite, not {number}")
            for number in ("NaN", "-Infinity", "1e400")
        ),
    ],
)
def test_a_wrong_call_is_told_to_the_model(tmp_path, wrong, told):
    with (
        ScriptedModel([wrong, calls(("double", {"x": 1}))]) as coder,
        ScriptedModel([plans("a"), plans("2", to="User")]) as planner,
    ):
        ask(interpreter(coder, lambda code: "2.0", tmp_path), planner)

    assert told in coder.calls[1][-1]["content"]


def test_a_table_is_given_by_the_name_of_a_variable(tmp_path):
    ran = []
    with (
        ScriptedModel([calls(("mark", {"x": "df.head()"})), calls(("mark", {"x": "df"}))]) as coder,
        ScriptedModel([plans("mark df"), plans("done", to="User")]) as planner,
    ):
        role = interpreter(coder, lambda code: ran.append(code) or "1", tmp_path, [spec("mark", kind="DataFrame")])
        ask(role, planner)

    assert coder.tools[0][0]["function"]["parameters"]["properties"]["x"]["type"] == "string"
    assert "must be the name of a variable that holds the table, not 'df.head()'" in coder.calls[1][-1]["content"]
    assert ran == ["r0 = mark(x=df)\nr0"]


def test_what_no_plugin_does_is_refused_with_the_reason_in_one_round(tmp_path):
    ran = []
    random = codes("import random\n[random.random() for _ in range(10)]")
    with (
        ScriptedModel([random, random]) as coder,
        ScriptedModel([plans("draw 10 random numbers"), plans("No plugin does that.", to="User")]) as planner,
    ):
        answer, session = ask(interpreter(coder, ran.append, tmp_path), planner, "generate 10 random numbers")

    assert not ran
    assert answer.text == "No plugin does that."
    assert [post.send_from for post in session.rounds[-1].posts] == ["User", "Planner", "CodeInterpreter", "Planner"]
    assert "an import is neither a call of a plugin" in session.rounds[-1].posts[2].message
    assert "Calls plugins, and can do nothing else" in planner.calls[0][0]["content"]


def test_those_that_say_plugin_only_are_there_and_all_where_none_says_so(tmp_path):
    kernel = FakeKernel(str, folder=tmp_path)
    names = [
        CodeInterpreter(ScriptedModel([]), kernel, plugins=plugins, policy=ONLY).plugin_names
        for plugins in ([spec("a", only=True), spec("b")], [spec("c"), spec("d")])
    ]

    assert names == [("a",), ("c", "d")]


@pytest.mark.parametrize(
    ("roles", "settings"),
    [
        (("planner", "code_interpreter"), {"code_interpreter.policy": "plugins-only"}),
        (("planner", "code_interpreter"), {"code_interpreter.plugin_only": True}),
        (("planner", "code_interpreter_plugin_only"), {}),
    ],
)
def test_settings_and_taskweavers_role_switch_it_on(tmp_path, roles, settings):
    with (
        ScriptedModel([plans("a"), plans("It can't be done.", to="User")]) as planner,
        ScriptedModel([codes("1 + 1"), "No plugin adds."]) as coder,
        open_session(
            {"Planner": planner, "CodeInterpreter": coder},
            roles=roles,
            kernel=lambda folder: FakeKernel(str, folder=folder),
            plugins=[spec()],
            folder=tmp_path,
            settings=settings,
        ) as session,
    ):
        session.ask("add 1 and 1")

    assert "a computation is neither" in coder.calls[1][-1]["content"]


def test_a_taskweaver_project_that_lists_the_role_switches_it_on(tmp_path):
    roles = '{"session.roles": ["planner", "code_interpreter_plugin_only"]}'
    (tmp_path / "taskweaver_config.json").write_text(roles, encoding="utf-8")
    read = read_settings(project=tmp_path, environ={"HOME": str(tmp_path)})

    assert read.read("code_interpreter", CodeInterpreterSettings).plugin_only
    assert "session.roles" in read.origin("code_interpreter.plugin_only")
    assert read.ignored == ()


def test_a_policy_of_ones_own_lies_beside_the_project_file(tmp_path, monkeypatch):
    (tmp_path / "tw_autogen.yaml").write_text("code_interpreter: {policy: ours.yaml}\n", encoding="utf-8")
    (tmp_path / "ours.yaml").write_text("base: strict\nmodules: [polars]\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with (
        ScriptedModel([plans("a"), plans("b", to="User")]) as planner,
        ScriptedModel([codes("import math"), "No."]) as coder,
        open_session(
            {"Planner": planner, "CodeInterpreter": coder},
            kernel=lambda folder: FakeKernel(str, folder=folder),
            folder=tmp_path / "elsewhere",
            trust=True,
        ) as session,
    ):
        session.ask("?")

    assert "import of 'math' is not allowed; allowed: polars" in coder.calls[1][-1]["content"]


def test_an_unknown_policy_is_an_error_before_anything_is_made(tmp_path):
    with pytest.raises(ConfigError, match="no policy is called 'stric'; did you mean 'strict'"):
        open_session(ScriptedModel([]), folder=tmp_path, settings={"code_interpreter.policy": "stric"})

    assert not list(tmp_path.iterdir())
