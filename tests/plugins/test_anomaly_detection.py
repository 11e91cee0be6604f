import doctest
import importlib.util

import pandas as pd
import pytest

from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.testing import load_plugin

SPEC = shipped_folder("plugins") / "anomaly_detection.yaml"


@pytest.fixture
def detect(tmp_path):
    with load_plugin(SPEC, tmp_path) as plugin:
        yield plugin


@pytest.fixture
def series():
    """Sixty quiet values and two that are not, every four hours, times as text."""
    times = pd.date_range("2024-01-01", periods=62, freq="4h").strftime("%Y-%m-%d %H:%M:%S")
    values = [10.0 + 0.1 * (at % 5) for at in range(60)] + [40.0, -20.0]
    return pd.DataFrame({"ts": times, "val": values})


def test_values_beyond_three_sigma_are_marked_and_counted(detect, series):
    marked, description = detect(series, "ts", "val")

    assert marked[marked.Is_Anomaly].val.tolist() == [40.0, -20.0]
    assert marked.Is_Anomaly.dtype == bool
    assert pd.api.types.is_datetime64_any_dtype(marked.ts)
    mean, std = series.val.mean(), series.val.std()
    assert description == (
        f"2 of 62 values of 'val' are anomalies: further than 3 standard deviations ({std:.6g} each) from the mean "
        f"{mean:.6g}, so outside [{mean - 3 * std:.6g}, {mean + 3 * std:.6g}]."
    )


def test_the_callers_frame_is_not_changed(detect, series):
    before = series.copy()

    detect(series, "ts", "val")

    pd.testing.assert_frame_equal(series, before)


def test_row_order_and_index_are_kept(detect, series):
    shuffled = series.sample(frac=1, random_state=3)

    marked, _ = detect(shuffled, "ts", "val")

    assert marked.index.tolist() == shuffled.index.tolist()
    assert sorted(marked.index[marked.Is_Anomaly]) == [60, 61]


@pytest.mark.parametrize("dtype", ["float64", "Float64"])
def test_a_missing_value_is_no_anomaly_and_does_not_count(detect, series, dtype):
    series["val"] = series["val"].astype(dtype)
    plain, counted = detect(series, "ts", "val")
    longer = series.reindex([*series.index, 70])
    longer.loc[70, "ts"] = "2025-01-01 00:00:00"

    marked, description = detect(longer, "ts", "val")

    assert description == counted
    assert counted.startswith("2 of 62 values")
    assert marked.Is_Anomaly.tolist() == [*plain.Is_Anomaly.tolist(), False]


def test_a_constant_series_has_no_anomaly(detect):
    marked, description = detect(pd.DataFrame({"t": [1, 2, 3], "v": [5, 5, 5]}), "t", "v")

    assert not marked.Is_Anomaly.any()
    assert description.startswith("0 of 3 values of 'v' are anomalies")


def test_numbers_as_time_stay_and_numbers_as_text_are_read(detect):
    marked, _ = detect(pd.DataFrame({"year": [2020, 2021], "v": ["1.5", "2"]}), "year", "v")

    assert marked.year.tolist() == [2020, 2021]
    assert marked.v.tolist() == [1.5, 2.0]


def test_the_anomalies_are_saved_for_the_user_and_nothing_where_there_are_none(tmp_path, series):
    with load_plugin(SPEC, tmp_path) as detect:
        detect(series[:60], "ts", "val")
        assert list(tmp_path.iterdir()) == []
        detect(series, "ts", "val")

    (saved,) = tmp_path.iterdir()
    assert saved.name == "anomalies.csv"
    assert pd.read_csv(saved).val.tolist() == [40.0, -20.0]


def test_the_threshold_is_a_setting(tmp_path, series):
    with load_plugin(SPEC, tmp_path, configurations={"sigmas": 9}) as detect:
        marked, description = detect(series, "ts", "val")

    assert not marked.Is_Anomaly.any()
    assert "further than 9 standard deviations" in description


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        (("ts", "vals"), KeyError, r"no column 'vals'; the frame has 'ts', 'val', 'word'"),
        (("time", "val"), KeyError, r"no column 'time'; the frame has"),
        (("ts", "word"), TypeError, r"column 'word' is (str|object), not numeric: Unable to parse string"),
        (("word", "val"), ValueError, r"column 'word' cannot be read as times: "),
    ],
)
@pytest.mark.filterwarnings("ignore:Could not infer format:UserWarning")  # of pandas, about the text 'x'
def test_what_cannot_be_done_is_raised(detect, series, columns, kind, message):
    series["word"] = "x"

    with pytest.raises(kind, match=message):
        detect(series, *columns)


def test_the_examples_in_its_docstrings_are_true():
    spec = importlib.util.spec_from_file_location("anomaly_detection_of_the_doctest", SPEC.with_suffix(".py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    outcome = doctest.testmod(module)

    assert (outcome.failed, outcome.attempted > 0) == (0, True)
