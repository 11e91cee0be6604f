import pytest

from tw_autogen.code_interpreter import names_used
from tw_autogen.code_interpreter.plugin_selection import select_plugins
from tw_autogen.plugin import Parameter, PluginSpec

SUBJECTS = ("invoice", "weather", "parcel", "patient", "satellite", "recipe", "contract", "sensor")
VERBS = ("fetch", "archive", "translate", "forecast", "visualise", "compress", "validate", "merge")
SIZE = (Parameter("size", "int", False, "how many", default=5),)
POOL = [
    PluginSpec(f"{verb}_{subject}", f"Give you the {subject} records, ready to {verb}.", SIZE)
    for subject in SUBJECTS
    for verb in VERBS
]
BUDGET = 2000


def names(specs):
    return [spec.name for spec in specs]


def chars(specs):
    return sum(len(spec.stub()) + 1 for spec in specs)


def test_all_go_in_their_order_when_they_fit():
    few = POOL[:5]

    chosen = select_plugins(few, "nothing of the kind", budget_chars=chars(few))

    assert chosen.specs == tuple(few)


def test_a_plugin_that_is_named_word_for_word_comes_first():
    chosen = select_plugins(POOL, "compress_sensor, whatever the weather forecast says", budget_chars=BUDGET, top_k=3)

    assert chosen.selected[0] == "compress_sensor"


def test_one_character_too_many_and_it_is_the_request_that_chooses():
    few = POOL[:5]

    chosen = select_plugins(few, "please archive it", budget_chars=chars(few) - 1)

    assert names(chosen.specs) == ["archive_invoice"]


def test_of_many_the_best_go_and_the_prompt_stays_flat():
    chosen = select_plugins(POOL, "What will the weather be? Make a forecast.", budget_chars=BUDGET)

    assert len(POOL) == 64
    assert "forecast_weather" in names(chosen.specs)
    assert len(chosen.specs) == 8
    assert chars(chosen.specs) <= BUDGET


def test_the_budget_ends_the_choice_but_never_keeps_the_best_one_out():
    request = "forecast the weather"

    assert names(select_plugins(POOL, request, budget_chars=1).specs) == ["forecast_weather"]
    assert chars(select_plugins(POOL, request, budget_chars=600).specs) <= 600


def test_top_k_is_the_most_that_a_request_chooses():
    assert len(select_plugins(POOL, "weather forecast", budget_chars=BUDGET, top_k=3).specs) == 3


@pytest.mark.parametrize(
    "request_text", ["How old is the universe?", "Can you give me that, please?", "", "¿…?", "你好"]
)
def test_none_that_fits_is_an_answer(request_text):
    chosen = select_plugins(POOL, request_text, budget_chars=BUDGET)

    assert chosen.specs == ()


def test_those_used_already_are_kept_whatever_the_request_says():
    used = {"merge_recipe", "fetch_parcel", "gone_by_now"}

    chosen = select_plugins(POOL, "validate the contracts", budget_chars=BUDGET, top_k=1, always=used)

    assert names(chosen.specs) == ["fetch_parcel", "merge_recipe", "validate_contract"]


def test_a_required_plugin_is_always_there():
    must = PluginSpec("audit", "Write to the log.", required=True)

    assert names(select_plugins([*POOL, must], "nothing known", budget_chars=BUDGET).specs) == ["audit"]


def test_the_same_request_chooses_the_same():
    first = select_plugins(POOL, "invoice or parcel", budget_chars=BUDGET)

    assert all(select_plugins(POOL, "invoice or parcel", budget_chars=BUDGET) == first for _ in range(3))


@pytest.mark.parametrize("request_text", ["Find anomalies", "an ANOMALY?", "detect_anomalies"])
def test_plurals_case_and_underscores_do_not_matter(request_text):
    specs = [*POOL, PluginSpec("anomaly_detection", "Mark what is odd.")]

    assert names(select_plugins(specs, request_text, budget_chars=BUDGET).specs) == ["anomaly_detection"]


def test_no_plugins_is_no_choice():
    assert select_plugins([], "anything", budget_chars=0).specs == ()


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("df, text = sql_pull_data('all')", {"sql_pull_data"}),
        ("rows = list(map(joke, range(3)))", {"joke"}),
        ("%time sql_pull_data('all')\njoke()", {"joke"}),
        ("!ls\nif True:\n    !pwd\njoke()", {"joke"}),
        ("print('joke')  # sql_pull_data", set()),
        ("joker = 1\nmy_joke()", set()),
        ("joke = 5", set()),
        ("x.joke()", set()),
        ("joke(", set()),
    ],
)
def test_names_are_read_from_the_syntax_not_from_the_text(code, used):
    specs = [PluginSpec("sql_pull_data", "d"), PluginSpec("joke", "d")]

    assert names_used(code, specs) == used
