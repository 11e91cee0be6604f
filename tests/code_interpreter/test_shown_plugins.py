"""Many plugins: which a model is shown, what is listed, and what happens when code calls one that it has not seen."""

import logging
from contextlib import ExitStack
from itertools import count

import pytest

from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings
from tw_autogen.code_interpreter.unseen_plugin_calls import unclear_calls
from tw_autogen.errors import ConfigError, ModelError
from tw_autogen.events import PluginsSelected
from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import Parameter, PluginSpec, callable_plugin
from tw_autogen.session import Session, open_session, read_settings
from tw_autogen.testing import FakeKernel, ScriptedModel, codes

TEXT = (Parameter("text", "str", True, "any text"), Parameter("times", "int", False, "how often", default=1))
SUBJECTS = ("invoice", "weather", "parcel", "patient", "satellite", "recipe", "contract", "sensor")
VERBS = ("archive", "translate", "forecast", "compress", "validate", "merge")


def spec(name, description, **more):
    return PluginSpec(name, description, TEXT, (Parameter("out", "str"),), connect=lambda context: str.upper, **more)


MANY = [spec(f"{verb}_{subject}", f"{verb.title()} the {subject} records.") for subject in SUBJECTS for verb in VERBS]


class Run:
    """A session of a CodeInterpreter alone, with what it emitted and what its model was asked."""

    def __init__(self, tmp_path, replies, plugins=MANY, answers=lambda code: "done", **settings):
        settings = {"plugin_chars": 2000, "auto_plugin_selection_topk": 3, **settings}
        self.events = []
        self.model = ScriptedModel(replies)
        self.kernel = FakeKernel(answers, folder=tmp_path)
        self.role = CodeInterpreter(
            self.model, self.kernel, plugins=plugins, settings=CodeInterpreterSettings(**settings)
        )
        self.session = Session([self.role], folder=tmp_path / "s", handlers=[self.events.append])

    def ask(self, *tasks):
        for task in tasks:
            self.session.ask(task)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.session.close()

    @property
    def choices(self):
        return [event for event in self.events if isinstance(event, PluginsSelected)]

    def said(self, call):
        return self.model.calls[call][-1]["content"]


@pytest.fixture
def start(tmp_path):
    """Give a function that makes a `Run`; its sessions are closed behind the test."""
    with ExitStack() as stack:
        numbers = count()
        yield lambda replies, **settings: stack.enter_context(Run(tmp_path / str(next(numbers)), replies, **settings))


def test_the_stubs_that_fit_come_with_the_task_and_the_others_are_listed_in_the_static_prompt(start, caplog):
    caplog.set_level(logging.INFO)

    run = start([codes("forecast_weather('x')")]).ask("Make a forecast of the weather")

    system, task = run.model.calls[0]
    assert "def forecast_weather(text: str, times: int = 1) -> str:" in task["content"]
    assert "def archive_invoice" not in task["content"]
    assert "def forecast_weather" not in system["content"]
    assert "- archive_invoice(text: str, times: int = 1) -> str: Archive the invoice records." in system["content"]
    (choice,) = run.choices
    assert (choice.role, choice.plugins, choice.told_anew) == ("CodeInterpreter", 48, False)
    assert choice.selected[0] == "forecast_weather"
    assert len(choice.selected) == len(choice.pool) == 3
    assert f"Selected plugins: {choice.selected}" in caplog.messages
    assert f"Selected plugin pool: {choice.pool}" in caplog.messages


def test_where_all_fit_nothing_is_chosen(start):
    run = start([codes("1")], plugin_chars=100_000).ask("Make a forecast of the weather")

    assert run.choices == []
    assert "def archive_invoice" in run.model.calls[0][0]["content"]


@pytest.mark.parametrize(("enabled", "chosen"), [(True, 1), ("auto", 0), (False, 0)])
def test_it_may_be_wanted_always_or_never(start, enabled, chosen):
    few = MANY[:3]
    run = start([codes("1")], plugins=few, enable_auto_plugin_selection=enabled).ask("archive the invoice")

    assert len(run.choices) == chosen


def test_never_means_all_however_many(start):
    run = start([codes("1")], enable_auto_plugin_selection=False).ask("archive the invoice")

    assert run.choices == []
    assert all(f"def {one.name}(" in run.model.calls[0][0]["content"] for one in MANY)


def test_what_code_has_used_stays_in_the_pool_and_what_it_has_not_goes(start):
    run = start([codes("forecast_weather('x')  # merge_parcel"), codes("1")])
    run.ask("Make a forecast of the weather", "translate the contract")

    first, second = run.choices
    assert "forecast_weather" in second.pool
    assert set(second.pool) == {"forecast_weather", *second.selected}
    assert set(first.pool) - {"forecast_weather"} - set(second.selected)


def test_the_next_prompt_begins_with_the_last_one_and_shows_no_stub_twice(start):
    run = start([codes("forecast_weather('x')"), codes("1")])
    run.ask("Make a forecast of the weather", "Make a forecast of the weather for the patient")

    first, second = run.model.calls
    assert second[: len(first)] == first
    assert sum(message["content"].count("def forecast_weather(") for message in second) == 1


def test_stubs_that_nobody_needs_are_taken_out_when_they_grow_too_many(start):
    tasks = [f"{verb} the {subject}" for subject in SUBJECTS for verb in VERBS]
    run = start([codes("forecast_weather('x')" if "weather" in task else "1") for task in tasks]).ask(*tasks)

    shown = [sum(message["content"].count('    """') for message in call) for call in run.model.calls]
    assert any(choice.told_anew for choice in run.choices)
    assert not run.choices[0].told_anew
    assert max(len("".join(m["content"] for m in call if "def " in m["content"])) for call in run.model.calls) < 20_000
    assert max(shown) * 120 < 3 * 2000
    last = "".join(message["content"] for message in run.model.calls[-1])
    assert "def forecast_weather(" in last
    assert "(Plugins that were shown here are not any more" in last


def test_none_that_fits_is_an_answer(start):
    run = start([codes("40 + 2")]).ask("How much is six times seven?")

    assert run.choices[0].selected == []
    assert "def " not in run.said(0)


def test_a_call_of_a_listed_one_that_fits_is_run(start):
    run = start([codes("merge_parcel('a', times=2)")]).ask("Make a forecast of the weather")

    assert run.kernel.cells == ["merge_parcel('a', times=2)"]


@pytest.mark.parametrize("call", ["merge_parcel()", "merge_parcel(parcels='a')", "list(map(merge_parcel, 'ab'))"])
def test_a_call_of_a_listed_one_that_does_not_fit_brings_its_stub_and_another_try(start, call):
    run = start([codes(call), codes("merge_parcel('a')")]).ask("Make a forecast of the weather")

    assert run.kernel.cells == ["merge_parcel('a')"]
    assert "The code was not run yet" in run.said(1)
    assert "def merge_parcel(text: str, times: int = 1) -> str:" in run.said(1)


def test_a_stub_that_was_shown_is_not_told_again_and_the_mistake_is_the_codes_own(start):
    run = start([codes("merge_parcel()"), codes("merge_parcel()")]).ask("Make a forecast of the weather")

    assert run.kernel.cells == ["merge_parcel()"]


def test_a_plugin_that_was_not_shown_may_not_be_replaced_either(start):
    run = start([codes("merge_parcel = [1]"), codes("1")]).ask("Make a forecast of the weather")

    assert "'merge_parcel' is a plugin and may not be replaced" in run.said(1)


def test_a_thousand_are_not_listed_but_found_by_words(start):
    run = start(
        [codes('find_plugins("merge parcels")'), codes("merge_parcel('a')")],
        plugin_list_chars=500,
    ).ask("Make a forecast of the weather")

    assert "archive_invoice" not in run.model.calls[0][0]["content"]
    assert "48 functions exist beside Python's own" in run.model.calls[0][0]["content"]
    assert "- merge_parcel(text: str, times: int = 1) -> str: Merge the parcel records." in run.said(1)
    assert "def merge_parcel(" in run.said(1)
    assert run.kernel.cells == ["merge_parcel('a')"]


def test_where_there_is_no_list_those_that_come_next_are_listed_with_the_task_once(start):
    run = start([codes("1"), codes("1")], plugin_list_chars=0, auto_plugin_selection_topk=1)
    run.ask("Make a forecast of the weather", "Make a forecast of the weather")

    assert "# Plugins that come near\n- " in run.said(0)
    assert "- archive_weather(text: str, times: int = 1) -> str: Archive the weather records." in run.said(0)
    assert "def archive_weather" not in run.said(0)
    assert "archive_weather" not in run.said(1)


def test_words_that_find_nothing_say_so_and_looking_up_for_ever_ends(start):
    replies = [codes('find_plugins("zebra")')] * 8
    run = start(replies, answers=lambda code: AssertionError("ran"), plugin_list_chars=0)

    with pytest.raises(AssertionError, match="ran"):
        run.ask("Make a forecast of the weather")

    assert "No plugin has to do with these words" in run.said(1)
    assert len(run.model.calls) == 5


def test_a_plugin_may_not_have_the_name_of_the_lookup(start):
    with pytest.raises(ConfigError, match="a plugin is called 'find_plugins', which is the word for looking"):
        start([], plugins=[*MANY, spec("find_plugins", "Find.")])


def test_the_task_type_brings_forward_what_serves_it(start):
    tagged = spec("squash_rare", "Replace seldom values.", tags=("features",))
    run = start([codes("1")], plugins=[*MANY, tagged]).ask("Engineer features of the sensor")

    assert run.choices[0].task_type == "features"
    assert "squash_rare" in run.choices[0].selected


def test_a_ranker_of_ones_own_chooses_and_is_prepared_when_the_pool_is_made(tmp_path):
    class Last:
        prepared = 0

        def prepare(self, texts):
            self.prepared = len(texts)

        def rank(self, query, texts):
            return [(len(texts) - 1, 1.0)]

    ranker, model = Last(), ScriptedModel([codes("1")])
    events = []
    role = CodeInterpreter(
        model, FakeKernel(["1"], folder=tmp_path), plugins=MANY, ranker=ranker,
        settings=CodeInterpreterSettings(plugin_chars=2000),
    )  # fmt: skip
    with Session([role], folder=tmp_path / "s", handlers=[events.append]) as session:
        session.ask("anything")

    assert ranker.prepared == len(MANY)
    assert [event.selected for event in events if isinstance(event, PluginsSelected)] == [["merge_sensor"]]


def test_a_server_for_embeddings_that_is_not_there_shows_before_any_request(tmp_path):
    settings = {
        "embedding.name": "small",
        "embedding.base_url": "http://127.0.0.1:9/v1",
        "embedding.max_tries": 1,
        "embedding.cache": str(tmp_path / "cache"),
        "code_interpreter.enable_auto_plugin_selection": True,
    }
    with pytest.raises(ModelError, match=r"is `embedding\.base_url` \(OPENAI_BASE_URL\) right"):
        open_session(ScriptedModel([]), plugins=MANY, folder=tmp_path, settings=settings)


def test_the_planner_is_told_all_by_one_line_while_the_list_fits_else_those_that_fit(start):
    listed, found = start([]).role, start([], plugin_list_chars=100).role

    assert "- archive_invoice(text: str): Archive the invoice records." in listed.intro
    assert listed.offer("forecast the weather") == ""
    assert "It has 48 plugins; those that fit are named with each request." in found.intro
    assert "- forecast_weather(text: str): Forecast the weather records." in found.offer("forecast the weather")


def test_a_taskweaver_project_that_does_not_say_means_three(tmp_path):
    (tmp_path / "taskweaver_config.json").write_text('{"llm.model": "x"}')
    said = tmp_path / "said"
    said.mkdir()
    (said / "taskweaver_config.json").write_text(
        '{"code_generator.auto_plugin_selection_topk": 5, "code_generator.enable_auto_plugin_selection": true}'
    )
    silent, spoken = (
        read_settings(project=folder, environ={}).read("code_interpreter", CodeInterpreterSettings)
        for folder in (tmp_path, said)
    )

    assert (silent.auto_plugin_selection_topk, silent.enable_auto_plugin_selection) == (3, "auto")
    assert (spoken.auto_plugin_selection_topk, spoken.enable_auto_plugin_selection) == (5, True)


def test_in_a_real_kernel_a_listed_plugin_is_there_to_be_called(tmp_path):
    def shout(text: str) -> str:
        """Write in capitals."""
        return text.upper()

    plugins = [*MANY, callable_plugin(shout)]
    settings = CodeInterpreterSettings(plugin_chars=1500, auto_plugin_selection_topk=2)
    with LocalKernel(tmp_path / "files") as kernel:
        model = ScriptedModel([codes("shout(words='a')"), codes("shout('hello')")])
        role = CodeInterpreter(model, kernel, plugins=plugins, settings=settings)
        with Session([role], folder=tmp_path / "s") as session:
            answer = session.ask("Make a forecast of the weather")

    assert "HELLO" in answer.text


@pytest.mark.parametrize(
    ("code", "unclear"),
    [
        ("f(1)", False),
        ("f(1, c=3)", False),
        ("f(1, 2, c=3)", False),
        ("f(a=1, c=2)", False),
        ("f()", True),
        ("f(1, 2, 3)", False),
        ("f(1, 2, 3, 4)", True),
        ("f(1, d=3)", True),
        ("f(1, a=3)", True),
        ("f(*rows)", True),
        ("f(**row)", True),
        ("f.submit(1)", True),
        ("g = f", True),
        ("f(1); f()", True),
        ("def f(): pass\nf()", False),
        ("import f\nf()", False),
        ("from m import x as f\nf()", False),
        ("f = 1\nf()", False),
        ("[f() for f in rows]", False),
        ("'f()'", False),
        ("x.f()", False),
        ("f(", False),
        ("%time f()\nf(1)", False),
    ],
)
def test_which_calls_are_clear_without_the_stub(code, unclear):
    parameters = (Parameter("a", "int", True), Parameter("b", "int"), Parameter("c", "int", False, default=1))

    assert bool(unclear_calls(code, [PluginSpec("f", "d", parameters)])) is unclear


def test_behind_an_optional_parameter_a_required_one_goes_by_keyword_as_the_stub_says():
    one = PluginSpec("f", "d", (Parameter("a", "int"), Parameter("b", "int", True)))

    assert [bool(unclear_calls(code, [one])) for code in ("f(1, b=2)", "f(1, 2)", "f(b=2)")] == [False, True, False]


def test_a_result_that_several_plugins_describe_alike_is_described_once(start):
    returns = (Parameter("step", "Any", description="does the same to other rows"),)
    plugins = [
        PluginSpec(name, f"{name} it.", TEXT, returns, connect=lambda context: str.upper) for name in ("fill", "scale")
    ]
    plugins.append(spec("draw", "Draws it."))
    run = start(["Fine."], plugins=plugins, plugin_chars=8000)

    prompt = run.role.prompt

    assert prompt.count("returns step: does the same to other rows") == 1
    assert prompt.count("A result that is not described is what a result of that name is above.") == 1
    assert prompt.count("text: any text") == 3
    run.session.ask("Say fine.")
