"""Which form a request shows for its answer, and which answers have it."""

import pytest

from tw_autogen.conversation import RequestedFormat, unfenced_json

FREE = [
    ("Give the mean with 2 decimals and the p-value with 4 decimals", "Mean 3.14, p-value 0.0432"),
    ("What is the ratio? Use 2 decimals. IP is 10.0.0.1.", "0.51234; IP 10.0.0.1; version 1.2.3"),
    ("I will save the result as b.csv myself; just print it.", "It is 4."),
    ("Show me code to save a table as table.csv", "df.to_csv('table.csv')"),
    ("Compute it and save the rows as out.csv.", "Done."),
    ("Read the JSON object in a.json and report the value of `x`.", "It is 4, from {a: 4}."),
    ("Save the table as JSON.", 'Saved. Its first row is {"a": 1}, and there are 120 of these.'),
    ("Convert the JSON file to CSV.", "Saved [orders.csv](orders.csv) and [items.csv](items.csv)."),
    ("Which columns does the JSON file have?", "Columns: [id, name, city, country, price]"),
    ("Is it significant? Answer as @sig[yes] or @sig[no].", "@sig[yes]"),
    ("Welchen Anteil hat Bonn? Antworte als @anteil[Prozent].", "@anteil[12 %]"),
    ("Email john@example[at]site.com", "Sent."),
    ("How many rows? My colleague anna @team[data] says 337.", "There are 337."),
    ("Wie viele? Meine Kollegin Anna @team[daten] meint 337.", "337"),
]


@pytest.mark.parametrize(("request_", "answer"), FREE)
def test_prose_and_files_are_never_checked(request_, answer):
    assert RequestedFormat.read(request_).problems(answer) == []


@pytest.mark.parametrize(
    "request_",
    ["Answer in JSON.", "Gib JSON aus.", "以 JSON 格式回答", "Return all 1000 names as JSON", "Give me the JSON of it"],
)
def test_an_answer_that_is_mostly_json_must_be_json_and_nothing_else(request_):
    form = RequestedFormat.read(request_)

    assert form.problems('{"a": [1, 2]}') == form.problems("There is no such column.") == []
    for wrong in ('Here it is: {"mean": 25.4219}', '{"a": 1', '["a", "b", \n… 300 characters left out …\n "z"]'):
        assert form.problems(wrong) == [
            "the request asks for JSON, and your message is not valid JSON and nothing else"
        ]


@pytest.mark.parametrize(
    ("request_", "strict"),
    [
        ("Which is best? Reply only with valid JSON.", True),
        ("What is 6*7? Answer in JSON only.", True),
        ("Output strict JSON, nothing else", True),
        ("Return only a JSON object with the mean.", True),
        ("Give me the table as valid JSON.", True),
        ("Your answer must be valid JSON", True),
        ("What is the mean? Only JSON, please.", True),
        ("Sum it (JSON only)", True),
        ("Antworte nur mit JSON.", True),
        ("Répondez uniquement en JSON.", True),
        ("Gib nur JSON-Dateien aus.", False),
        ("Use only the JSON file in data/ and tell me the mean of x", False),
        ("How many rows of the column payload hold valid JSON, and how many don't?", False),
        ("Return how many rows hold valid JSON.", False),
        ("Look only at the JSON column. Which key is the most common?", False),
        ("Print only the JSON column's mean.", False),
        ("Is config.txt a valid JSON document?", False),
        ("Parse the raw JSON in column a and plot the prices", False),
        ("Parse the JSON, and use only column a", False),
        ("Convert orders.csv to valid JSON and save it as orders.json", False),
        ("Is a.txt valid JSON?", False),
        ("Answer in JSON.", False),
        ("Save it as a.json only.", False),
    ],
)
def test_prose_is_sent_back_where_the_request_says_that_nothing_but_json_is_wanted(request_, strict):
    assert bool(RequestedFormat.read(request_).problems("It is 42.")) == strict


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("The JSON column has lists. Show the first one.", '["a", "b"] (from row 1)'),
        ("what does the json hold?", "{'a': 1} in row 3"),
        ("Show me an example of JSON and explain it.", '```json\n{"a": 1, "b": [2]}\n```\nA pair.'),
    ],
)
def test_a_request_that_only_speaks_of_json_takes_any_answer(request_, answer):
    assert RequestedFormat.read(request_).problems(answer) == []


@pytest.mark.parametrize("value", ["NaN", "-Infinity"])
def test_what_python_writes_for_a_missing_number_is_no_json(value):
    (problem,) = RequestedFormat.read("Return only valid JSON.").problems(f'{{"mean": {value}}}')

    assert problem.endswith("put null in the place of NaN and Infinity")


@pytest.mark.parametrize(
    ("placeholder", "value", "problem"),
    [
        ("mean", "34.5", ""),
        ("mean", "-3e5", ""),
        ("mean", "", "@x[…] with its value in the brackets is missing"),
        ("kurtosis_value", "kurtosis_value", "still holds the placeholder: put the value there"),
        ("kurtosis_value", "{kurtosis_value}", "still holds the placeholder: put the value there"),
        ("kurtosis_value", "Kurtosis value", "still holds the placeholder: put the value there"),
        ("kurtosis_value", "…", "still holds the placeholder: put the value there"),
        ("kurtosis_value", "platykurtic", ""),
        ("Yes", "yes", ""),
        ("mean", "nan", "@x[nan] is no value"),
        ("mean, or NaN if there is none", "nan", ""),
        ("rate", "6.25%", "the bare number belongs there, without %"),
        ("rate in %", "6.25%", ""),
        ("w", "test_statistic=0.9543", "the bare value belongs there, without its name"),
        ("a=1", "a=2", ""),
        ("list", '["a", "b"]', ""),
        ("yes/no", "yes", ""),
        ("name", "none", ""),
    ],
)
def test_a_value_in_brackets_is_checked_by_its_syntax(placeholder, value, problem):
    problems = RequestedFormat.read(f"Answer as @x[{placeholder}].").problems(f"So: @x[{value}]")

    assert len(problems) == bool(problem)
    assert problem in "".join(problems)


@pytest.mark.parametrize(
    ("wanted", "value", "wrong"),
    [
        ("rounded to two decimal places", "0.9915815807847344", True),
        ("calculate it up to 4 decimals", "-12.3456789", True),
        ("rounded to two decimal places", "0.99", False),
        ("rounded to two decimal places", "0.0123", False),  # perhaps another value was to be rounded
        ("as it is printed", "0.9915815807847344", False),
        ("rounded to two decimal places", "1e-12", False),
        ("the decimal separator is a point", "0.9915815807847344", False),
    ],
)
def test_a_value_that_was_left_unrounded_is_sent_back_where_decimals_are_asked_for(wanted, value, wrong):
    problems = RequestedFormat.read(f"Answer as @x[mean], {wanted}.").problems(f"So: @x[{value}]")

    assert problems == [f"@x[{value}] was left unrounded: the request says how many decimals belong there"] * wrong


def test_each_name_must_be_there():
    form = RequestedFormat.read("Answer as @mean_fare[mean] and @count[n], please.")

    assert form.problems("@mean_fare[34.5] @count[7]") == []
    assert form.problems("It is 34.5, @count[7].") == ["@mean_fare[…] with its value in the brackets is missing"]


def test_only_a_form_that_can_be_recognized_fits():
    assert RequestedFormat.read("@x[number]").fits("Yes: @x[4]")
    assert RequestedFormat.read("As JSON").fits("[1, 2]")
    assert not RequestedFormat.read("As JSON").fits("It is 4.")
    assert not RequestedFormat.read("How many?").fits("It is 4.")


def test_a_fence_around_json_alone_is_taken_off():
    assert unfenced_json('```json\n{"a": 1}\n```') == '{"a": 1}'
    for other in ('So:\n```json\n{"a": 1}\n```', "```json\n{a\n```", "```python\n[1]\n```", "It is 4."):
        assert unfenced_json(other) == other


@pytest.mark.parametrize(
    "request_",
    [
        "Answer as @r[value].",
        "Answer as @r[value] please",
        "Answer in this form: @r[value]",
        'Format: 1. @r[value] where "value" is a number',
        'Return 2 values: @n[count], @r[value]. Where "count" is an integer',
        "{\n@r[value]\nwhere value is a number}",
        "Round to two decimals @r[value]",
        "Give the correlation @r[value] where value is a number",
        "Antworte genau so: @r[value] @n[n]",
    ],
)
def test_a_form_is_found_wherever_requests_put_it(request_):
    assert "r" in dict(RequestedFormat.read(request_).named)


@pytest.mark.parametrize(
    ("answer", "shaped"),
    [
        ("@r: 0.31", "@r[0.31]"),
        ("@r = -3.1e-5", "@r[-3.1e-5]"),
        ("@r(0.31)", "@r[0.31]"),
        ("@r{0.31}", "@r[0.31]"),
        ("**@r**: 0.31", "@r[0.31]"),
        ("**@r:** 0.31", "@r[0.31]"),
        ("So: @r: 0.31.", "So: @r[0.31]."),
        ("@r: 0.31 (Pearson)", "@r[0.31] (Pearson)"),
        ("@r: 0.31, @kind: not linear", "@r[0.31], @kind[not linear]"),
        ("@r: 0.31 @kind: linear\nDone.", "@r[0.31] @kind[linear]\nDone."),
        ("@r[0.3] is @r: 0.3", "@r[0.3] is @r: 0.3"),
        ("@other: 4", "@other: 4"),
        ("@rr: 4", "@rr: 4"),
        ("@r:", "@r:"),
    ],
)
def test_values_without_brackets_get_them(answer, shaped):
    assert RequestedFormat.read("Answer as @r[value] @kind[kind].").shaped(answer) == shaped


@pytest.mark.parametrize(
    ("request_", "answer", "shaped"),
    [
        ("Answer only @x[number].", "The answer is @x[1].", "@x[1]"),
        ("Answer as @x[number] and nothing else.", "**@x[1]**", "@x[1]"),
        ("Answer as @x[number] and nothing else.", "The answer is @x: 1.", "@x[1]"),
        ("Print @x[a], @y[b] without explanation.", "So: @x[1], @y[2]. Done.", "@x[1], @y[2]"),
        ("Print @x[a] and @y[b], no other text.", "x is @x[1]\nbut y is @y[2].", "@x[1]\n@y[2]"),
        ("Answer as @x[number].", "The answer is @x[1].", "The answer is @x[1]."),
        ("Answer as @x[number] and nothing else.", "It is @x[1] or @x[2].", "It is @x[1] or @x[2]."),
        ("Answer as @x[number] and nothing else.", "I don't know.", "I don't know."),
        ("Answer as @x[a], @y[b], nothing else.", "It is @x[1].", "It is @x[1]."),
    ],
)
def test_words_around_a_form_are_taken_off_where_the_request_wants_the_form_alone(request_, answer, shaped):
    assert RequestedFormat.read(request_).shaped(answer) == shaped


@pytest.mark.parametrize(
    ("answer", "alone"),
    [
        ("@x[1]", True),
        (" @x[1]\n", True),
        ("@x[1] (n = 3)", False),
        ("It is @x[1]", False),
        ("@x[a]", False),
        ("", False),
    ],
)
def test_what_is_all_form_is_told_from_what_only_holds_it(answer, alone):
    assert RequestedFormat.read("Answer as @x[a].").is_all_of(answer) is alone


NUMBER = (
    "What would be the average fee for a transaction value of 1234 EUR? Answer must be just a number rounded to 6 "
    "decimals. If a question does not have an applicable answer, please respond with 'Not Applicable'"
)
LIST = (
    "What is the fee ID or IDs that apply? Answer must be a list of values in comma separated list, eg: A, B, C. If "
    "the answer is an empty list, reply with an empty string. If there is none, please respond with 'Not Applicable'"
)


@pytest.mark.parametrize(
    ("request_", "bare"),
    [
        (NUMBER, "number"),
        (NUMBER.replace("just a number", "just a number expressed in EUR"), "number"),
        ("How many rows? Answer with only a number.", "number"),
        ("How many rows? Reply with just the number, please", "number"),
        ("How many rows? Answer with the number only", "number"),
        ("Output nothing but the number.", "number"),
        (LIST, "list"),
        ("Which ids? Answer with a comma-separated list of ids.", "list"),
        ("Which? Reply only as comma-separated values!", "list"),
        ("Answer only the number of rows.", ""),
        ("Answer with just a number for each column.", ""),
        ("Answer with just a number, then explain it.", ""),
        ("How many rows? How many columns? Answer with just a number.", ""),
        ("Answer with just the number plate of the car.", ""),
        ("Answer as @n[number], only a number.", ""),
        ("Answer with only a number as JSON.", ""),
        ("Give the mean, and the outliers as a comma-separated list.", ""),
        ("Answer the questions about the comma-separated values.", ""),
        ("Answer must be just the name of the card scheme.", ""),
        ("Load the comma separated list in a.txt. Answer in English.", ""),
        ("Save only the numbers, and answer my question.", ""),
        ("Only the number of customers matters. Respond with a report.", ""),
    ],
)
def test_a_bare_form_is_one_that_the_whole_answer_must_have(request_, bare):
    assert RequestedFormat.read(request_).bare == bare


@pytest.mark.parametrize(
    ("request_", "answer", "fits", "wrong"),
    [
        (NUMBER, "6.854747", True, False),
        (NUMBER, "-1,234.5", True, False),
        (NUMBER, "6.854747 EUR", False, False),
        (NUMBER, "Not Applicable", False, False),
        (NUMBER, "There is no fee for it.", False, False),
        (NUMBER, "**6.854747**", False, False),
        (NUMBER, "The average fee is 6.854747 EUR.", False, True),
        (NUMBER, "6.854747 is the average fee; two natural readings give the same.", False, True),
        (LIST, "1, 3, 4, 5", True, False),
        (LIST, "36", True, False),
        (LIST, "1, 3, 4.", False, False),
        (LIST, "1, 2,\n3, 4", True, False),
        (LIST, "Not Applicable", False, False),
        (LIST, "", False, False),
        (LIST, "Boston, MA-NH Area, Los Angeles", False, False),
        (LIST, "Star Wars: A New Hope, Alien, The Thing", False, False),
        (LIST, "A1, A2, B7", False, False),
        (LIST, "None of them applies, as far as the rules go.", False, False),
        (LIST, "There is no file fees.json.\nWhere is it?", False, False),
        (LIST, "The fee IDs that apply are: 1, 3, 4.", False, True),
        (LIST, "The fee IDs 1, 3, 4, 5 and 7 apply.", False, True),
        (LIST, "The cities are: Oslo, Bergen", False, True),
        (LIST, "Fee IDs:\n1, 3, 4, 5", False, True),
        (LIST, "- 1\n- 3\n- 4", False, True),
    ],
)
def test_a_bare_form_has_no_sentence_around_it(request_, answer, fits, wrong):
    form = RequestedFormat.read(request_)

    assert form.fits(answer) is fits
    assert bool(form.problems(answer)) is wrong


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        ("north    297\nsouth     12\nName: units, dtype: int64", "north    297\nsouth     12"),
        ("2020-01-01    1\nFreq: D, Name: x, dtype: int64\nThe mean is 1.", "2020-01-01    1\nThe mean is 1."),
        ("0    1\ndtype: datetime64[ns, UTC]", "0    1"),
        (
            "0    1\n      ..\n99   99\nLength: 100, dtype: int64",
            "0    1\n      ..\n99   99\nLength: 100, dtype: int64",
        ),
        ("The dtype: int64", "The dtype: int64"),
    ],
)
def test_what_pandas_prints_below_a_series_is_no_part_of_an_answer(printed, answer):
    assert RequestedFormat.read("What is it by region?").shaped(printed) == answer
