import pytest

from tw_autogen.planner.user_request import unfounded_numbers

SHOWN = "856 rows, 312 missing, 332 missing, in 2,400 lines\n1,412\n2,388\n3,455\n4,501"


@pytest.mark.parametrize(
    ("answer", "unfounded"),
    [
        ("36.45 % and 38.79 %, 2.34 apart; 0.3645", []),
        ("312 / 856 = 36.45 %, 332 of 856 = 38.79 %, so 38.79 - 36.45 = 2.34", []),
        ("332 / 312 = 1.064, and 4.27", ["4.27"]),
        ("403 / 856 = 47.08 %", ["403", "47.08"]),
        ("312 + 332 = 644 of 2,400", []),
        ("412 + 388 + 455 + 501 = 1,756", []),
        ("412 + 388 + 9 = 809", ["9", "809"]),
        ("856 - 312 - 332 = 212", []),
        ("the three deepest: 3, of seven", []),
        ("856 / 0 = 7.5", ["0", "7.5"]),
        ("... / 12..5 = 7.5", ["12..5", "7.5"]),
    ],
)
def test_a_number_follows_from_shown_ones_where_the_answer_says_how(answer, unfounded):
    assert unfounded_numbers(answer, SHOWN) == unfounded
