"""Which form a request asks its answer to have, and which answers have it."""

import pytest

from tw_autogen.planner.contract import AnswerContract

PLAIN = [
    "How many rows does data.csv have?",
    "Read the JSON object in a.txt and report the value of `x`.",
    "Save the table as JSON.",
    "Write a JSON file with the results.",
    "Compare a.csv to b.csv.",
    "Don't answer in JSON.",
    "Report the mean of the column decimals.",
    "Draw it as chart.png if matplotlib can be imported, else write a chart.svg yourself.",
    "Save it as a.csv or b.csv.",
    "Do not save it to out.csv.",
    "Take 3 samples.",
]
OF_DATA = [
    "Give me the mean of the column value in records.json.",
    "Report how many objects the JSON holds.",
    "Give me a short summary of the JSON that the API sent.",
    "What does the function return when it reads JSON?",
    "Give me the json column's most frequent value.",
    "Reply with the schema of the JSON response.",
    "Report each price with at least two decimals.",
    "How many prices in sales.csv have more than two decimals?",
    "Give the p-values unrounded, never to 3 decimals.",
    "The file has numbers with 3 decimals. What is their sum?",
    "Round the column price to 2 decimals and report its exact mean.",
    "Keep 4 decimals or more.",
    "Plot the histogram of the file prices.csv.",
    "Draw a map using the shapes in the file regions.json.",
    "Create a pivot table from the file orders.csv.",
    "Write a short report on what you see in file notes.txt.",
    "Write code that reads a file called input.csv and prints its head.",
    "Show me how to save a DataFrame to out.parquet.",
    "What is written to log.txt at start?",
    "I saved the results as results.csv yesterday: what is their mean?",
    "My colleague stored the data in the file raw.csv. Count its rows.",
    "Keep only rows whose name is written as a.md.",
    "Keep the columns that also belong to b.csv.",
    "Find the mention @alice[admin] in the text.",
    "Email john@example[at]site.com",
]


@pytest.mark.parametrize("request_", PLAIN + OF_DATA)
def test_a_request_without_a_plain_demand_asks_for_no_form(request_):
    assert AnswerContract.read(request_) == AnswerContract()


@pytest.mark.parametrize(
    "request_",
    [
        "Answer in JSON.",
        "Which is best? Reply only with valid JSON.",
        "Return the result as a JSON object with the keys a and b.",
        'Your answer must be JSON: {"mean": number}.',
        "Output strict JSON, nothing else",
    ],
)
def test_json_is_asked_for_in_many_words(request_):
    contract = AnswerContract.read(request_)

    assert contract.is_json
    assert contract.misfits('{"a": [1, 2]}', None) == []
    assert contract.misfits("Here it is: {}", None) == [
        "the User asked for JSON, and your message is not JSON and nothing else"
    ]


def test_named_values_must_all_be_there_and_filled_in(tmp_path):
    contract = AnswerContract.read("Answer as @mean_fare[mean] and @count[n], please.")

    assert contract.named == (("mean_fare", "mean"), ("count", "n"))
    assert contract.misfits("@mean_fare[34.5] @count[7]", tmp_path) == []
    assert contract.misfits("@mean_fare[mean] @count[]", tmp_path) == [
        "@mean_fare[…] with its value in the brackets is missing",
        "@count[…] with its value in the brackets is missing",
    ]


@pytest.mark.parametrize(
    ("request_", "decimals"),
    [
        ("Round it to 2 decimal places.", 2),
        ("with three decimals", 3),
        ("to one decimal place", 1),
        ("The mean with 2 decimals, the p-value with four decimals.", 4),
        ("no decimals", 0),
        ("Give the mean (2 decimals).", 2),
        ("Two decimals, please.", 2),
        ("exactly 2 digits after the point", 2),
    ],
)
def test_decimals_are_counted(tmp_path, request_, decimals):
    contract = AnswerContract.read(request_)

    assert contract.decimals == decimals
    assert contract.misfits(f"It is {1.123456789:.{decimals}f} and 7, in v1.2.34567 of 127.0.0.1.", tmp_path) == []
    assert contract.misfits("It is 1,234.56789.", tmp_path) == [
        f"1,234.56789 has more than the {decimals} decimals that were asked for"
    ]


@pytest.mark.parametrize(
    "request_",
    [
        "Compute it and save the rows as out.csv.",
        "Export the result to `out.csv`, please.",
        "Write the table into out.csv, then report.",
        "A table is to be stored in the file out.csv",
        "Save the chart of sales in a file named out.csv",
        "Create a CSV file called out.csv with the first ten rows.",
    ],
)
def test_a_file_that_was_asked_for_must_be_there(tmp_path, request_):
    contract = AnswerContract.read(request_)

    assert contract.files == ("out.csv",)
    assert contract.misfits("Done.", tmp_path) == ["there is no file out.csv, which the User asked for"]
    (tmp_path / "out.csv").write_text("a\n1\n", encoding="utf-8")
    assert contract.misfits("Done.", tmp_path) == []
