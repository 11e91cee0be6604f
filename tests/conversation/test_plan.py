"""Plans as data, from and to TaskWeaver's text."""

import pytest

from tw_autogen.conversation import Plan, Status
from tw_autogen.conversation.plan import Depends

TEXT = """\
1. load a.csv
2. count the rows <sequentially depends on 1>
3. report to the user <interactively depends on 1, 2>"""


def test_a_plan_comes_back_as_the_text_that_it_was():
    assert str(Plan.parse(TEXT)) == TEXT


def test_dependencies_say_on_what_and_how():
    steps = Plan.parse(TEXT).steps

    assert steps[1].depends == ((1, Depends.sequential),)
    assert steps[2].depends == ((1, Depends.interactive), (2, Depends.interactive))


def test_the_current_step_is_found_by_number_or_by_words_and_those_before_it_are_done():
    plan = Plan.parse(TEXT)

    for current in (
        "2. count",
        "2",
        "count the rows",
        "Step 2: count",
        "步骤2：count",
        "第2步：count",
        "第二步：count the rows",
        "### Step 2: count",
        "**2.** count",
        "- count the rows",
    ):
        assert [step.status for step in plan.at(current).steps] == [Status.done, Status.current, Status.pending]


def test_of_two_steps_with_the_same_words_the_number_says_which_one_is_meant():
    plan = Plan.parse("1. look\n2. clean\n3. look\n4. report")

    found = [plan.find(words) for words in ("3. look", "3", "look", "9. look", "9. dance")]

    assert [step and step.id for step in found] == [3, 3, 1, 1, None]


def test_a_step_whose_words_begin_with_a_number_is_found_by_its_words():
    plan = Plan.parse("1. load\n2. 3 largest regions\n3. 2024 sales by month")

    found = [plan.find(words) for words in ("3 largest regions", "2024 sales by month", "3. sales", "2. 2024 sales")]

    assert [step and step.id for step in found] == [2, 3, 3, 2]


def test_a_current_step_that_is_not_in_the_plan_changes_nothing():
    plan = Plan.parse(TEXT)

    assert plan.at("7. dance") == plan


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("- load\n- report", ["load", "report"]),
        ("1) load\n   the file\n2) report", ["load the file", "report"]),
        ("load and report", ["load and report"]),
        ("1. load\n   - keep x\n2. report", ["load - keep x", "report"]),
        ("1. load\n- drop nan\n- sort\n2. report", ["load - drop nan - sort", "report"]),
        ("1. load\n  * keep x", ["load * keep x"]),
        ("1. load\n- report", ["load", "report"]),
        ("[1] load\n[2] report", ["load", "report"]),
        ("1 - load\n2 - 3 rows\n2 – report", ["load 2 - 3 rows", "report"]),
        ("a) load\nb) report", ["load", "report"]),
        ("- [ ] load\n- [x] report", ["load", "report"]),
        ("1. load\n   a) rows\n2. report", ["load a) rows", "report"]),
        ("- load\n  - keep x", ["load", "keep x"]),
        ("\n1. load\n\n2. report\n", ["load", "report"]),
        ("1、加载\n2、2023 年\n（3）报告", ["加载", "2023 年", "报告"]),
        ("1.加载\n2．画图\n步骤3：报告", ["加载", "画图", "报告"]),
        ("1. load\n1. clean\n1. report", ["load", "clean", "report"]),
        ("Here is the plan:\n1. load\n2. report <sequentially depends on 1>", ["load", "report"]),
        ("**计划：**\n1、加载\n2、报告", ["加载", "报告"]),
        ("Compute the mean of:\n- a\n- b", ["Compute the mean of:", "a", "b"]),
        ("1. load:\na.csv", ["load: a.csv"]),
        ("### Step 1: load\n### Step 2: report", ["load", "report"]),
        ("第1步：加载\n第2步：报告", ["加载", "报告"]),
        ("第一步：加载\n第十二步，报告", ["加载", "报告"]),
        ("Шаг 1: загрузить\nШаг 2: отчёт", ["загрузить", "отчёт"]),
        ("Passo 1: carica\nPasso 2: riferisci", ["carica", "riferisci"]),
        ("ステップ1：読む\nステップ2：報告", ["読む", "報告"]),
        ("1단계: 로드\n2단계: 보고", ["로드", "보고"]),
        ("第2季度 loads", ["第2季度 loads"]),
        ("1. load\\n2. report", ["load", "report"]),
        ("1. read C:\\\\new\\\\1.csv", ["read C:\\\\new\\\\1.csv"]),
        ("1. load<br>2. report", ["load", "report"]),
        ("1. load 2. clean 3. report", ["load", "clean", "report"]),
        ("1) load; 2) report", ["load;", "report"]),
        ("1. multiply all by 2. Then report", ["multiply all by 2. Then report"]),
        ("1. use the 3. sheet", ["use the 3. sheet"]),
        ("1.load\n2.5 million rows at\n10:30\n2)report", ["load 2.5 million rows at 10:30", "report"]),
    ],
)
def test_sloppy_plans_are_understood(text, steps):
    assert [step.text for step in Plan.parse(text).steps] == steps


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the plan has no steps"),
        ("1. a <sequentially depends on 5>", "step 1 depends on step 5, which is not in the plan"),
        (
            "1. a <sequentially depends on 2>\n2. b <interactively depends on 1>",
            "1, 2 depend on one another in a circle",
        ),
        ("1. a <sequentially depends on 1>", "steps 1 depend on one another in a circle"),
        ("1. a\n1. b <sequentially depends on 1>", "do not have a number each of their own"),
    ],
)
def test_a_knotted_plan_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        Plan.parse(text)
