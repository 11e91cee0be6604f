"""Marks the values of a time series that lie further than three standard deviations from their mean."""

from __future__ import annotations

import pandas as pd
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from tw_autogen.plugin import Plugin, register_plugin


def mark_anomalies(df: pd.DataFrame, time_column: str, value_column: str, *, sigmas: float = 3.0) -> pd.DataFrame:
    """Mark the values that lie further than so many standard deviations from the mean.

    Args:
        df: One row per point in time, shape (n, m), in any order. Not changed.
        time_column: Times, or text that can be read as such. Numbers (a year, a step) stay as they are.
        value_column: Numbers, or text that can be read as such. NaN is never an anomaly and does not count in the mean.
        sigmas: Threshold in standard deviations (sample, ddof = 1), not in the column's own unit.

    Returns:
        A copy of `df`, shape (n, m + 1): the new column `Is_Anomaly` is bool, the time column datetime (or numeric),
        the value column numeric; row order and index are kept.

    Raises:
        KeyError: `df` has no such column; the message lists those it has.
        ValueError: the time column cannot be read as times.
        TypeError: the value column is not numeric.

    Example:
        >>> loads = pd.DataFrame({"ts": pd.date_range("2024-01-01", periods=21), "load": [10.0] * 20 + [99.0]})
        >>> marked = mark_anomalies(loads, "ts", "load")
        >>> marked[marked.Is_Anomaly].load.tolist()
        [99.0]

    Source:
        Three-sigma rule, as TaskWeaver's `anomaly_detection`. Differs: raises where that one printed and returned
        None, and leaves the caller's frame alone.
    """
    for column in (time_column, value_column):
        if column not in df:
            raise KeyError(f"no column {column!r}; the frame has {', '.join(map(repr, df.columns))}")
    marked = df.copy()
    marked[time_column] = _times(df[time_column])
    values = marked[value_column] = _numbers(df[value_column])
    beyond = (values - values.mean()).abs() > sigmas * values.std()
    marked["Is_Anomaly"] = beyond.fillna(False).astype(bool)  # a missing value of a nullable dtype compares as missing
    return marked


def _times(column: pd.Series) -> pd.Series:
    if is_datetime64_any_dtype(column) or is_numeric_dtype(column):
        return column
    try:
        return pd.to_datetime(column)
    except (ValueError, TypeError) as error:  # pandas's own parser errors are ValueErrors
        raise ValueError(f"column {column.name!r} cannot be read as times: {error}") from error


def _numbers(column: pd.Series) -> pd.Series:
    if is_numeric_dtype(column):
        return column
    try:
        return pd.to_numeric(column)
    except (ValueError, TypeError) as error:
        raise TypeError(f"column {column.name!r} is {column.dtype}, not numeric: {error}") from error


@register_plugin
class AnomalyDetection(Plugin):
    def __call__(self, df: pd.DataFrame, time_col_name: str, value_col_name: str) -> tuple[pd.DataFrame, str]:
        sigmas = float(self.config.get("sigmas", 3.0))
        marked = mark_anomalies(df, time_col_name, value_col_name, sigmas=sigmas)
        found = marked[marked["Is_Anomaly"]]
        values = marked[value_col_name]
        mean, limit = values.mean(), sigmas * values.std()
        description = (
            f"{len(found)} of {values.count()} values of {value_col_name!r} are anomalies: further than {sigmas:g} "
            f"standard deviations ({values.std():.6g} each) from the mean {mean:.6g}, so outside "
            f"[{mean - limit:.6g}, {mean + limit:.6g}]."
        )
        if len(found):
            self.ctx.add_artifact("anomalies", "anomalies.csv", "df", found, description)
        return marked, description
