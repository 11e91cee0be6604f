"""Where the numbers of an answer come from: found as printed, rounded or computed; inventions are not found."""

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Post, Round
from tw_autogen.model import Usage
from tw_autogen.number_sources import number_sources, unfounded_numbers
from tw_autogen.session import Answer
from tw_autogen.written_numbers import ParsedNumbersCache

PRINTED = """The mean is 25.4219, of 1234567 rows
share 0.4237, p = 3.2e-05, loss -17.25
north 1,240.50
south 980
"""


def ran(query, printed, code="print(1)", *, answer=""):
    kind = AttachmentType
    attachments = (Attachment(kind.reply_content, code), Attachment(kind.execution_result, printed))
    posts = [Post("User", "Planner", query), Post("CodeInterpreter", "Planner", f"Printed:\n{printed}", attachments)]
    return Round(query, posts=[*posts, *([Post("Planner", "User", answer)] if answer else [])])


def kinds(text, here=None):
    found = number_sources(text, [here or ran("Which of 12 shops, limit 75?", PRINTED)])
    return [(one.number, one.kind) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The mean is 25.4219.", [("25.4219", "printed")]),
        ("The mean is **25.42**.", [("25.42", "rounded")]),
        ("The mean is about 25", [("25", "rounded")]),
        ("Its share is 42.4 %", [("42.4 %", "rounded")]),
        ("Its share is 42 percent", [("42 percent", "rounded")]),
        ("1,234,567 rows", [("1,234,567", "printed")]),
        ("1 234 567 rows", [("1 234 567", "printed")]),
        ("1.23 million rows", [("1.23 million", "rounded")]),
        ("1,23 Mio. Zeilen", [("1,23 Mio", "rounded")]),
        ("1,2 Millionen Zeilen", [("1,2 Millionen", "rounded")]),
        ("p < 0.025", [("0.025", "not found")]),
        ("p < 0,025", [("0,025", "not found")]),
        ("1.2M rows", [("1.2M", "rounded")]),
        *((f"{said} rows", [(said, "printed")]) for said in ("1’234’567", "1\u2009234\u2009567", "1_234_567")),
        ("12,34,567 rows", [("12,34,567", "printed")]),
        *((f"{said} rows", [(said, "rounded")]) for said in ("12.3 lakh", "1,2 millones", "1,2 milioni", "1,2 млн")),
        ("$0.0012B", [("0.0012B", "rounded")]),
        ("about 1,230,000 rows", [("1,230,000", "rounded")]),
        ("p = 3.2e-05, or 0.000032", [("3.2e-05", "printed"), ("0.000032", "printed")]),
        ("a loss of 17.25, that is −17.25", [("17.25", "printed"), ("17.25", "printed")]),
        ("north has $1,240.5 and south 980", [("1,240.5", "printed"), ("980", "printed")]),
        ("1240.50 against 980: 260.5 more", [("1240.50", "printed"), ("980", "printed"), ("260.5", "possible")]),
        ("1240.50 against 980: 26.6 % more", [("1240.50", "printed"), ("980", "printed"), ("26.6 %", "possible")]),
        ("1240.50 and 980, 2220.5 in all", [("1240.50", "printed"), ("980", "printed"), ("2220.5", "possible")]),
        ("1240.50 is 1.27 times 980", [("1240.50", "printed"), ("1.27", "possible"), ("980", "printed")]),
        ("for 12 shops below 75", [("12", "given"), ("75", "given")]),
        ("- a\n- b\n\nThese 2 stand out.", [("2", "computed")]),
        ("1.234.567 Zeilen, im Mittel 25,4219 und 1.240,50 €", [
            ("1.234.567", "printed"), ("25,4219", "printed"), ("1.240,50", "printed")]),
        ("1 240,50 € et 25,42", [("1 240,50", "printed"), ("25,42", "rounded")]),
        ("1.240 oder 1.243", [("1.240", "rounded"), ("1.243", "not found")]),
        ("4.711.000 und 3.141.592,65, mit Python 3.11.7", [("4.711.000", "not found"), ("3.141.592,65", "not found")]),
    ],
)  # fmt: skip
def test_a_number_is_found_where_it_comes_from(text, expected):
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("平均は25.4219で、最大は980件です。", [("25.4219", "printed"), ("980", "printed")]),
        ("売上は4711円です。", [("4711", "not found")]),
        ("平均值为42.7，共３行", [("42.7", "not found"), ("3", "not found")]),
        ("比率は42.4％", [("42.4%", "rounded")]),
        ("约123.5万行", [("123.5万", "rounded")]),
        ("123万4567行と5億行", [("123万4567", "printed"), ("5億", "not found")]),
        ("1.2兆円, 3亿元", [("1.2兆", "not found"), ("3亿", "not found")]),
        ("매출은 980원, 총 4711만", [("980", "printed"), ("4711만", "not found")]),
        ("上限75、店舗12", [("75", "given"), ("12", "given")]),
        ("2024年5月17日の第3章、上位5、12月と1位", []),
        ("売上2024.csvと図17.png", []),
    ],
)
def test_numbers_next_to_chinese_japanese_and_korean_words_are_seen(text, expected):
    assert kinds(text) == expected


def test_a_direct_answer_in_japanese_is_founded_on_what_was_shown():
    assert unfounded_numbers("売上は1億2000万円、店舗は40件", ["120000000 yen"]) == ["40"]
    assert unfounded_numbers("売上は120,000,000円", ["売上：1億2000万円"]) == []


def test_rows_of_a_table_that_was_shown_and_a_stated_sum_are_sources():
    data = [Round("Add them", posts=[Post("User", "Planner", "a.csv:\n1,412\n2,388\n3,455\n4,501")])]

    found = number_sources("Together 1,756 (412 + 388 + 455 + 501), not 1,757.", data)

    assert [(one.number, one.kind) for one in found] == [
        ("1,756", "computed"), ("412", "given"), ("388", "given"), ("455", "given"), ("501", "given"),
        ("1,757", "not found"),
    ]  # fmt: skip


def test_a_share_of_missing_values_that_a_file_s_description_shows_is_a_source():
    data = [Round("How many are missing?", posts=[Post("User", "Planner", "a.csv: 856 rows\n- x: float, 312 missing")])]

    found = number_sources("36.45 % are missing; 36.55 % are not.", data)

    assert [(one.kind, one.found) for one in found] == [("computed", "100 * (312 / 856)"), ("not found", "")]


SHOWN = "856 rows, 312 missing, 332 missing, in 2,400 lines\n1,412\n2,388\n3,455\n4,501\n7,north,-14.25,3,25.4219"


@pytest.mark.parametrize(
    ("answer", "unfounded"),
    [
        ("36.45 % and 38.79 %, 2.34 apart; 0.3645", []),
        ("312 / 856 = 36.45 %, 332 of 856 = 38.79 %, so 38.79 - 36.45 = 2.34", []),
        ("332 / 312 = 1.064, and 4.27", ["4.27"]),
        ("403 / 856 = 47.08 %", ["403", "47.08 %"]),
        ("312 + 332 = 644 of 2,400", []),
        ("412 + 388 + 455 + 501 = 1,756", []),
        ("412 in May + 388 in June, 800 in all", []),
        ("412 + 388 + 9 = 809", ["9", "809"]),
        ("856 - 312 - 332 = 212", []),
        ("the three deepest: 3, of seven", []),
        ("Im Norden sind es 14,25, also viel", []),
        ("856 / 0 = 7.5", ["0", "7.5"]),
        ("... / 12..5 = 7.5", ["12", "7.5"]),
        ("14.25 in the north; 2 400 lines", []),
        ("25.4219, that is 25.42", ["25.42"]),  # a rounding could be of any number
        ("412 and 388, together 800", ["800"]),  # so could a sum that is not stated
        ("412 and 388, a ratio of 1.06", ["1.06"]),
        ("its best year is 2019, on 2019-05-17, in line 17", ["2019", "05", "17"]),
        ("KR-419 comes first, with 4.2 million", ["419", "4.2 million"]),
        ("The file has 3 columns: region, month and revenue.", []),
        ("The file has 9 columns: region, month and revenue.", ["9"]),
        ("544 rows have a value, 545 none", ["545"]),
        ("(1) region, (2) month; step 1: load; column 6 and the top 10", []),
        ("A 5-fold cross-validation with an 80/20 split", []),
        ("It fell 5-6 times, to 80/20", ["5", "6", "80", "20"]),
    ],
)
def test_a_direct_answer_is_founded_on_what_was_shown_and_on_arithmetic_that_it_states(answer, unfounded):
    assert unfounded_numbers(answer, [SHOWN]) == unfounded


def test_missing_values_are_a_share_of_their_own_file_s_rows():
    shown = ["a.csv: 200 rows, 20 missing", "b.csv: 400 rows, 60 missing"]

    assert unfounded_numbers("10.0 % and 15.0 %", shown) == []
    assert unfounded_numbers("5.0 % and 30.0 %, 7.5 %", shown) == ["30.0 %", "7.5 %"]  # 5.0: the difference


def test_a_long_s_in_the_word_of_a_number_is_an_s():
    assert unfounded_numbers("Es sind 6.", ["ſechs Pferde"]) == []


@pytest.mark.parametrize("written", ["3.2 × 10⁻⁵", "3.2×10^-5", "3.2 * 10^{-5}", "0,32·10⁻⁴"])
def test_a_number_with_a_power_of_ten_is_one_number(written):
    assert kinds(f"So p = {written} here.", ran("?", "p 3.2e-05")) == [(written, "printed")]
    assert kinds(f"So p = {written} here.", ran("?", "p 3.4e-05")) == [(written, "not found")]


@pytest.mark.parametrize("words", ["Prozent", "procent", "per cent", "pour cent", "por ciento", "per cento"])
def test_a_percentage_in_words_comes_from_a_fraction(words):
    assert kinds(f"So 12,5 {words} of them.", ran("?", "0.1251")) == [(f"12,5 {words}", "rounded")]


@pytest.mark.parametrize("word", ["SİX", "sıx"])
def test_a_turkish_i_in_the_word_of_a_number_is_an_i(word):
    assert unfounded_numbers("They are 6.", [f"{word} rows"]) == []
    assert [source.kind for source in number_sources("They are 6.", [Round(f"{word} rows")])] == ["given"]


@pytest.mark.parametrize(
    "text",
    [
        "In 2024, on 2024-05-17 at 12:30, from 3/4/2023 to 5 March",
        "1. first\n2) second\n**3.** third\nthe 4th, #5, step 6, line 7 and Figure 8",
        "Python 3.12.1, v1.2.3, chart_2.png, files/out-17.csv, Q1, x2, ARIMA(1)-model of KR-418, https://x.org/99?a=98"[
            :60
        ],
        "top 5",
        "p < 0.05, a 95 % confidence interval, the 5 % level, No. 3, le 1er, der 3. Platz, 5-fold, an 80/20 split",
    ],
)
def test_what_is_no_quantity_needs_no_source(text):
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("The median is 24.9.", ["24.9"]),
        ("The mean is 25.4129.", ["25.4129"]),
        ("The mean is 25.5, R² is 0.87", ["25.5", "0.87"]),
        ("1240.50 against 980: 31 % more", ["31 %"]),
        ("There are 7 outliers.", ["7"]),
        ("$4.2 million in sales", ["4.2 million"]),
        ("1,234,576 rows", ["1,234,576"]),
        ("p < 0.03, and 2e-5", ["0.03", "2e-5"]),
    ],
)
def test_an_invention_is_not_found(text, invented):
    assert [number for number, kind in kinds(text) if kind == "not found"] == invented


@pytest.mark.parametrize(
    ("text", "printed", "expected"),
    [
        ("There are 0 missing values and 0 duplicates.", "done", [("0", "not found")] * 2),
        ("There are 0 missing values.", "missing 0", [("0", "printed")]),
        ("p = 4e-11", "p=0.0", [("4e-11", "not found")]),
        ("p = 3e-11", "p = 8.2e-10", [("3e-11", "not found")]),
        ("p = 3.2e-120", "2 of 120", [("3.2e-120", "not found")]),
        ("p = 3e-120", "p = 3.2e-120", [("3e-120", "rounded")]),
        ("6 × 10^23 molecules", "6 rows", [("6 × 10^23", "not found")]),
        ("6 million", "6 rows", [("6 million", "not found")]),
        ("4.2 million", "revenue 4.2", [("4.2 million", "possible")]),
        ("It is 3 m long, of 3 b and 3 K", "2810000 rows", [("3", "not found")] * 3),
        (
            "2.8 M rows, 2810 k, 2.8M",
            "2810000 rows",
            [("2.8 M", "rounded"), ("2810 k", "printed"), ("2.8M", "rounded")],
        ),
        ("14 more than 9", "9 and 23", [("14", "not found"), ("9", "printed")]),
        ("23 is 14 more than 9", "9 and 23", [("23", "printed"), ("14", "possible"), ("9", "printed")]),
        (
            "from 980.0 to 1240.5, 27 %",
            "980.0 1240.5",
            [("980.0", "printed"), ("1240.5", "printed"), ("27 %", "not found")],
        ),
        (
            "980.0 - 1240.5 = 260.5",
            "980.0 1240.5",
            [("980.0", "printed"), ("1240.5", "printed"), ("260.5", "computed")],
        ),
    ],
)
def test_a_number_that_is_only_near_another_one_has_no_source(text, printed, expected):
    assert kinds(text, ran("Which one?", printed)) == expected


def test_a_difference_that_may_be_meant_is_no_negative_one():
    (_, source, _) = number_sources("9 and 14 and 23", [ran("?", "9 and 23")])

    assert str(source) == "14: could be 23 - 9"


def test_words_that_are_no_numbers_found_none():
    assert unfounded_numbers("north has 2 rows and 1 gap", ["Which one of the two has gaps? Nur eins davon?"]) == ["1"]


@pytest.mark.parametrize("answer", ["p = 2.3e-12", "It is 6 × 10^9.", "6 million", "2e-6"])
def test_a_direct_answer_that_is_only_near_what_was_shown_is_not_founded(answer):
    assert len(unfounded_numbers(answer, ["0 or 6 rows, 2 or 12"])) == 1


def test_a_source_says_what_is_written_where():
    (source,) = Answer.of(ran("?", PRINTED, answer="Mean: 25.42"), Usage()).sources

    assert (source.number, source.start, source.kind, source.found) == ("25.42", 6, "rounded", "25.4219")
    assert str(source) == "25.42: rounded from 25.4219 (output 1: The mean is 25.4219, of 1234567 rows)"


def test_numbers_of_earlier_rounds_and_of_code_count():
    earlier = ran("?", "total 480", answer="480 in all")
    here = ran("and twice?", "done", "k = 2.5", answer="480 at k = 2.5; 481")

    found = Answer.of(here, Usage(), earlier=[earlier]).sources
    assert [one.kind for one in found] == ["printed", "given", "not found"]
    assert Answer.of(here, Usage()).sources[0].kind == "not found"


def test_a_page_names_what_was_not_found_and_escapes_its_sources():
    answer = Answer.of(ran("?", "<b>x</b> 25.4219, 4.5", answer="25.42, 4.5, 29.92, and 99"), Usage())
    page = answer._repr_mimebundle_()["text/html"]

    assert "<summary>Sources of 4 numbers; not found in any output: 99; only possibly computed: 29.92</summary>" in page
    assert "<li>25.42: rounded from 25.4219 (output 1: &lt;b&gt;x&lt;/b&gt; 25.4219, 4.5)</li>" in page


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1,",
        "1 ",
        "1-",
        "a.b-",
        "1.1.",
        "jan ",
        "- 3\n",
        "12 345 ",
        "1,2.5,",
        "7 of 8 + ",
        "8 rows 3 missing ",
        "https://",
        "5%",
        "1e9",
        "1e999 ",
        "9" * 400 + " ",
        "a-",
        "#",
    ],
)
def test_hostile_text_takes_linear_time(text, cpu_seconds):
    long = text * (20_000 // len(text))
    began = cpu_seconds()
    number_sources(long, [ran("?", f"7 {long[:5000]}")])
    unfounded_numbers(long, [long[:5000]])

    assert cpu_seconds() - began < 5


def test_an_answer_without_numbers_is_compared_with_nothing():
    class Unread(tuple):
        __slots__ = ()

        def __reversed__(self):
            raise AssertionError("messages were looked through")

    assert unfounded_numbers("Nothing was found in a2.csv.", Unread(["1 2 3"])) == []


def test_what_was_read_for_one_answer_is_not_read_again_for_the_next_one(cpu_seconds):
    rounds = [ran(f"question {at}", "\n".join(f"{at}.{number} 1,{number}" for number in range(400))) for at in range(9)]
    parsed = ParsedNumbersCache()
    spent = []
    for kept in (parsed, parsed, None):
        began = cpu_seconds()
        found = [number_sources(f"It is {at}.123, 1,399 and 77.", rounds[: at + 1], parsed=kept) for at in range(9)]
        spent.append(cpu_seconds() - began)
        assert found == [number_sources(f"It is {at}.123, 1,399 and 77.", rounds[: at + 1]) for at in range(9)]

    assert spent[1] < spent[2] / 2


SHOPS = "Nord 33\nSüd 33\nWest 33\ns1 150\ns2 150\n" + "".join(f"{day:02}/Feb/2024 50\n" for day in range(1, 21))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Süd has 33.", ["Süd 33"]),
        ("33 in West", ["West 33"]),
        ("Nord 33, Süd 33 and West 33", ["Nord 33", "Süd 33", "West 33"]),
        ("33 in Nord, 33 in Süd", ["Nord 33", "Süd 33"]),
        ("| Region | n |\n|---|---|\n| West | 33 |\n| Süd | 33 |", ["West 33", "Süd 33"]),
        ("s2: 150; s1: 150", ["s2 150", "s1 150"]),
        ("on 07/Feb/2024 it was 50", ["07/Feb/2024 50"]),
        ("elsewhere 33", ["Nord 33"]),
    ],
)
def test_of_equal_numbers_the_source_is_that_of_a_line_like_the_answers(text, lines):
    found = number_sources(text, [ran("How many?", SHOPS)])

    assert [one.where.partition(": ")[2] for one in found] == lines


@pytest.mark.parametrize(
    "date",
    [
        *("3 dicembre 2026", "2 gennaio 2024", "01/Feb/2024", "5-Mai-2024", "27. Mai 2025", "1er janvier 2024"),
        *("12 août 2023", "4 de enero de 2024", "3. Okt. 2023", "9 mrt 2024", "March 5", "12 Sept", "31 December 2023"),
    ],
)
def test_dates_of_other_languages_need_no_source(date):
    assert number_sources(f"until {date}.", [ran("?", "x 3")]) == ()


@pytest.mark.parametrize("text", ["3 markets", "7 decimals", "5 generals", "4 sets", "6 marks", "8 augments"])
def test_words_that_begin_like_a_month_are_none(text):
    assert [one.number for one in number_sources(text, [ran("?", "x")])] == [text[0]]


def test_equal_numbers_without_end_take_little_time(cpu_seconds):
    printed = "\n".join(f"a{at} b{at} 7 7 7 7" for at in range(20_000))
    answer = " ".join(f"a{at} 7," for at in range(2500))
    started = cpu_seconds()
    number_sources(answer, [ran("?", printed)])

    assert cpu_seconds() - started < 10
