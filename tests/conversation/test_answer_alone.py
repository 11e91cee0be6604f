"""Which requests want a form and nothing else, in five languages."""

import pytest

from tw_autogen.conversation import RequestedFormat

ANSWER = "The mean is @m[3.5], of 12 rows."

ALONE = [
    "Answer as @m[value] and nothing else.",
    "Reply with @m[value], nothing more.",
    "Nothing else. @m[value]",
    "no extra text @m[value]",
    "Answer only @m[value]",
    "Give only the form @m[value]",
    "Just @m[value], please",
    "Only `@m[value]`",
    "no explanation @m[value]",
    "without explanations @m[value]",
    "without any other text @m[value]",
    "respond only in this format: @m[value]",
    "output only the line @m[value]",
    "No commentary. @m[value]",
    "no prose around it @m[value]",
    "Antworte als @m[value] und sonst nichts.",
    "Nichts anderes ausgeben @m[value]",
    "Nur @m[value] ohne Erklärung",
    "nur diese Form @m[value]",
    "Réponds @m[value], rien d'autre",
    "sans explication @m[value]",
    "Responde @m[value], nada más",
    "sin explicaciones @m[value]",
    "Rispondi @m[value], nient'altro",
    "senza spiegazioni @m[value]",
    "only in this form @m[value]",
    "nothing but the line @m[value]",
    "Return only @m[value]",
    "Reply only with the value in brackets @m[value]",
    "no additional words @m[value]",
    "Your reply should contain nothing except @m[value], no words",
    "Only this format please: @m[value]",
    "Output: @m[value] (no other text)",
    "Write only @m[value].",
    "Provide only @m[value]",
    "Your whole answer is just @m[value]",
    "Gib nur @m[value] aus",
    "Antworte ausschließlich mit @m[value]",
    "Uniquement @m[value]",
    "Solamente @m[value], sin comentarios",
    "Soltanto @m[value]",
    "nothing besides @m[value]",
    "with no text around it @m[value]",
    "Please respond with only the tag @m[value]",
]

NOT_ALONE = [
    "If there is nothing else in the file, skip it. Answer as @m[value]",
    "return only rows of 2020, then the mean as @m[value]",
    "give only customers with 3 orders as list, @m[value]",
    "nothing but noise? report @m[value]",
    "print only the first ten rows and @m[value]",
    "Rows without comments in the column note: how many? @m[value]",
    "stores with no sentences in review @m[value]",
    "The output only covers 2020. @m[value]",
    "nichts anderes im Lager: wie viele? @m[value]",
    "Use only the column x. @m[value]",
    "without text columns compute @m[value]",
    "columns with no text values: @m[value]",
    "there was nothing more on the shelf @m[value]",
    "return only positive values to the model; @m[value]",
    "no words in the title column? @m[value]",
    "count texts without words of four letters @m[value]",
    "are there lines with nothing else than zeros @m[value]",
    "print just one chart; @m[value]",
    "only the rows with a value count. @m[value]",
    "ignore text without prose style @m[value]",
    "nothing more than 5 counts @m[value]",
    "products sold only in May @m[value]",
    "senza altro prodotto @m[value]",
    "customers who bought nothing else @m[value]",
]


@pytest.mark.parametrize("request_", ALONE)
def test_words_around_a_form_are_taken_off_where_it_is_wanted_alone(request_):
    assert RequestedFormat.read(request_).shaped(ANSWER) == "@m[3.5]"


@pytest.mark.parametrize("request_", NOT_ALONE)
def test_words_around_a_form_stay_where_the_request_says_such_words_of_its_data(request_):
    assert RequestedFormat.read(request_).shaped(ANSWER) == ANSWER
