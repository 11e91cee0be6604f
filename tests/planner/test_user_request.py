import pytest

from tw_autogen.planner.user_request import unfounded_numbers

SHOWN = "856 rows, 312 missing, 332 missing, in 2,400 lines"


@pytest.mark.parametrize(
    ("answer", "unfounded"),
    [
        ("36.45 % and 38.79 %", ["36.45", "38.79"]),
        ("312 / 856 = 36.45 %, 332 of 856 = 38.79 %, so 38.79 - 36.45 = 2.34", []),
        ("312 / 856 = 36.45 %, and 4.27", ["4.27"]),
        ("400 / 856 = 46.73 %", ["400", "46.73"]),
        ("312 + 332 = 644 of 2,400", []),
        ("856 / 0 = 7.5", ["0", "7.5"]),
        ("... / 12..5 = 3", ["12..5", "3"]),
    ],
)
def test_a_number_follows_from_shown_ones_where_the_answer_says_how(answer, unfounded):
    assert unfounded_numbers(answer, SHOWN) == unfounded
