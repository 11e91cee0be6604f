"""Steps that prepare tables for models: each is fitted on one frame, changes a copy of it, and does so to others.

Ten plugins share this file; each one's YAML has the name and the parameters of a function in `STEPS`. Every one gives
the changed frame and a `Step`, whose `transform` applies what was learned to other rows. No frame that is handed in is
ever changed.

Source: the tools for machine learning in Data Interpreter's table. Differs: what is learned never comes from the rows
that it is applied to later; the label is out of reach; a category or group that was not seen has a stated meaning.
"""

from __future__ import annotations

import importlib
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from tw_autogen.plugin import Plugin, register_plugin


class Step:
    """What was learned from one frame.

    Attributes:
        about: What was learned, in words.
        needs: Columns that another frame must have.
    """

    def __init__(self, name: str, df: pd.DataFrame, needs: list[str], about: str = "") -> None:
        self.name, self.needs, self.about, self._rows = name, needs, about, len(df)

    def transform(self, df: pd.DataFrame) -> pd.DataFrame:
        """Do to other rows what was done to the first; gives a copy, with index and row order kept.

        Raises:
            KeyError: a column is missing.
        """
        _check(df, self.needs)
        return self.apply(df)

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        """Give the changed copy."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.name}, fitted on {self._rows} rows: {self.about}"


class Filled(Step):
    """Learned one value for each column."""

    def __init__(self, df: pd.DataFrame, values: dict[str, Any]) -> None:
        summary = ", ".join(f"{column}={value!r}" for column, value in values.items()) or "nothing to fill"
        super().__init__("fill_missing", df, list(values), summary)
        self.values = values

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        return df.assign(**{column: _filled(df[column], value) for column, value in self.values.items()})


class Transformed(Step):
    """Learned by a transformer of scikit-learn, whose output becomes columns.

    Args:
        replaces: The columns that went in are left out.
        text: What goes in are categories.
    """

    def __init__(
        self, name: str, df: pd.DataFrame, columns: list[str], tool: Any, *, replaces: bool = True, text: bool = False
    ) -> None:
        super().__init__(name, df, columns)
        self._replaces, self._text = replaces, text
        self.tool = tool.fit(_plain(df, columns, text=text))
        self.columns = [str(name) for name in self.tool.get_feature_names_out(columns)]
        given = "" if self.columns == columns else f"; gives {', '.join(self.columns)}"
        self.about = f"{type(tool).__name__} of {', '.join(columns)}{given}"

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        made = self.tool.transform(_plain(df, self.needs, text=self._text))
        values = pd.DataFrame(made, columns=self.columns, index=df.index)
        if self.columns == self.needs:
            return df.assign(**dict(values.items()))
        new = [column for column in self.columns if column not in self.needs]
        taken = [column for column in new if column in df]
        if taken:
            raise ValueError(f"there is a column {taken[0]!r} already; rename it first")
        return (df.drop(columns=self.needs) if self._replaces else df).assign(**dict(values[new].items()))


class Looked(Step):
    """Learned a table that is looked up by one or more columns; what is not in it gets `other`."""

    def __init__(
        self, name: str, df: pd.DataFrame, by: list[str], found: pd.DataFrame, *, other: float = float("nan")
    ) -> None:
        super().__init__(name, df, by, f"{', '.join(map(str, found))} for {len(found)} values of {', '.join(by)}")
        self.found, self._other = found, other

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        keys = df[self.needs].astype(object)
        found = keys.join(self.found, on=self.needs)[list(self.found)]
        found = found if np.isnan(self._other) else found.fillna(self._other).astype("int64")
        return df.assign(**dict(found.items()))


class Chained(Step):
    """Several steps, one after the other."""

    def __init__(self, name: str, df: pd.DataFrame, steps: list[Any]) -> None:
        needs = list(dict.fromkeys(column for step in steps for column in step.needs))
        super().__init__(name, df, needs, "; ".join(step.about for step in steps))
        self.steps = steps

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        for step in self.steps:
            df = step.apply(df)
        return df


class TargetMeans(Step):
    """Learned the mean of the label in each category; its own rows may get means from which they were left out."""

    def __init__(self, df: pd.DataFrame, columns: list[str], label: str, folds: int, smooth: float | str) -> None:
        super().__init__("encode_target", df, columns, f"mean of {label} by {', '.join(columns)}")
        target = _label(df, label)
        numeric = is_numeric_dtype(target) and target.nunique() > 2
        if not numeric and target.nunique() != 2:
            raise ValueError(f"the label {label!r} has {target.nunique()} values; a number or two values are needed")
        encoder, splits = _sklearn("preprocessing").TargetEncoder, _sklearn("model_selection")
        self.tool = encoder(target_type="continuous" if numeric else "binary", smooth=smooth)
        plain, own = _plain(df, columns, text=True), np.empty((len(df), len(columns)))
        if folds:
            if not numeric and folds > (most := int(target.value_counts().max())):
                raise ValueError(
                    f"folds must be at most {most}, the rows of the more frequent value of {label!r}, or 0; not {folds}"
                )
            split = (splits.KFold if numeric else splits.StratifiedKFold)(folds, shuffle=True, random_state=0)
            for learned, out in split.split(plain, target):
                own[out] = self.tool.fit(plain.iloc[learned], target.iloc[learned]).transform(plain.iloc[out])
        self.tool.fit(plain, target)
        self.own = self._named(own if folds else self.tool.transform(plain), df)

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        return df.assign(**dict(self._named(self.tool.transform(_plain(df, self.needs, text=True)), df).items()))

    def _named(self, values: Any, df: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(values, columns=[f"{column}_target_mean" for column in self.needs], index=df.index)


class Crossed(Step):
    """Puts categories of several columns together: nothing is learned but which."""

    def __init__(self, df: pd.DataFrame, columns: list[str], order: int) -> None:
        super().__init__("cross_categories", df, columns)
        self.groups = list(combinations(columns, order))
        self.about = ", ".join("_x_".join(group) for group in self.groups)

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        texts = df[self.needs].astype(object).where(df[self.needs].notna(), "missing").astype(str)
        return df.assign(**{"_x_".join(group): texts[list(group)].agg("|".join, axis=1) for group in self.groups})


class Binned(Step):
    """Learned the inner edges of intervals; what lies beyond the outer ones belongs to the first or the last."""

    def __init__(self, df: pd.DataFrame, edges: dict[str, np.ndarray]) -> None:
        summary = "; ".join(
            f"{column} at {', '.join(f'{edge:.6g}' for edge in some)}" for column, some in edges.items()
        )
        super().__init__("bin_columns", df, list(edges), summary)
        self.edges = edges

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        new = {}
        for column, edges in self.edges.items():
            values = _numbers(df, column)
            bins = pd.Series(np.searchsorted(edges, values, side="right"), index=df.index, dtype="Int64")
            new[f"{column}_bin"] = bins.mask(values.isna())
        return df.assign(**new)


class Selected(Step):
    """Learned which columns are of no use; those that were not judged, such as the label, stay."""

    def __init__(self, df: pd.DataFrame, judged: list[str], dropped: list[str], why: str) -> None:
        self.dropped, self.kept = dropped, [column for column in judged if column not in dropped]
        summary = f"{why}; kept {', '.join(self.kept) or 'none'}; dropped {', '.join(dropped) or 'none'}"
        super().__init__("select_columns", df, self.kept, summary)

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        return df.drop(columns=[column for column in self.dropped if column in df])


class Timed(Step):
    """Learned which parts of its times vary."""

    def __init__(self, df: pd.DataFrame, parts: dict[str, list[str]]) -> None:
        summary = "; ".join(f"{', '.join(some) or 'nothing'} of {column}" for column, some in parts.items())
        super().__init__("time_parts", df, list(parts), summary)
        self.parts = parts

    def apply(self, df: pd.DataFrame) -> pd.DataFrame:
        times = {column: _times(df, column) for column in self.parts}
        return df.assign(
            **{f"{column}_{part}": _part(times[column], part) for column, some in self.parts.items() for part in some}
        )


PARTS = ("year", "quarter", "month", "day", "day_of_year", "weekday", "is_weekend", "hour", "minute")


def fill_missing(
    df: pd.DataFrame, columns: list[str] | None = None, strategy: str = "auto", value: Any = None, label: str = ""
) -> Step:
    """Learn what to put in the place of missing values."""
    _one_of("strategy", strategy, ("auto", "mean", "median", "max_frequent", "constant"))
    if strategy == "constant" and value is None:
        raise ValueError("strategy 'constant' needs `value`")
    if columns is None:
        columns = [str(column) for column in df if column != label and df[column].isna().any()]
    _check(df, columns, label)
    values = {}
    for column in columns:
        known = df[column].dropna()
        if strategy == "constant":
            values[column] = value
            continue
        if known.empty:
            raise ValueError(f"column {column!r} has no value at all; leave it out, or use strategy 'constant'")
        numeric = is_numeric_dtype(known) and not is_bool_dtype(known)
        if strategy in ("mean", "median"):
            _numbers(df, column)
        how = {"auto": "median" if numeric else "max_frequent"}.get(strategy, strategy)
        values[column] = known.mode().iloc[0] if how == "max_frequent" else float(getattr(known, how)())
    return Filled(df, values)


def scale_columns(df: pd.DataFrame, columns: list[str], method: str = "standard") -> Step:
    """Learn the scale of numeric columns."""
    scalers = {
        "standard": "StandardScaler", "minmax": "MinMaxScaler", "maxabs": "MaxAbsScaler", "robust": "RobustScaler",
    }  # fmt: skip
    _one_of("method", method, tuple(scalers))
    for column in _check(df, columns):
        _numbers(df, column)
    return Transformed("scale_columns", df, columns, getattr(_sklearn("preprocessing"), scalers[method])())


def encode_categories(df: pd.DataFrame, columns: list[str], method: str = "onehot") -> Step:
    """Learn the categories of columns."""
    _one_of("method", method, ("onehot", "ordinal", "count"))
    _check(df, columns)
    if method == "count":
        counts = [
            df[column]
            .astype(object)
            .value_counts(dropna=False)
            .rename(f"{column}_count")
            .rename_axis(column)
            .to_frame()
            for column in columns
        ]
        steps = [Looked("count", df, [column], found, other=0.0) for column, found in zip(columns, counts, strict=True)]
        return Chained("encode_categories", df, steps)
    tools = _sklearn("preprocessing")
    if method == "onehot":
        tool = tools.OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.int64)
    else:
        tool = tools.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return Transformed("encode_categories", df, columns, tool, text=True)


def encode_target(
    df: pd.DataFrame, columns: list[str], label: str, folds: int = 5, smooth: float | str = "auto"
) -> TargetMeans:
    """Learn the mean of the label in each category."""
    _check(df, columns, label)
    if folds and not 2 <= folds <= len(df):
        raise ValueError(f"folds must be 0, or from 2 to the number of rows ({len(df)}), not {folds}")
    return TargetMeans(df, columns, label, folds, smooth)


def cross_categories(df: pd.DataFrame, columns: list[str], order: int = 2) -> Step:
    """Learn which columns are put together."""
    _check(df, columns)
    if not 2 <= order <= len(columns):
        raise ValueError(f"order must be from 2 to the number of columns ({len(columns)}), not {order}")
    return Crossed(df, columns, order)


def group_statistics(
    df: pd.DataFrame, by: list[str], columns: list[str], statistics: tuple[str, ...] | list[str] = ("mean",)
) -> Step:
    """Learn statistics of columns within groups."""
    for statistic in statistics:
        _one_of("statistics", statistic, ("mean", "median", "std", "min", "max", "sum", "count", "nunique"))
    _check(df, [*by, *columns])
    plain = df[columns].groupby([df[column].astype(object) for column in by], dropna=False)
    found = plain.agg(list(statistics))
    found.columns = [f"{column}_{one}_by_{'_'.join(by)}" for column, one in found.columns]
    return Looked("group_statistics", df, by, found)


def bin_columns(df: pd.DataFrame, columns: list[str], bins: int = 5, strategy: str = "quantile") -> Step:
    """Learn the edges of intervals."""
    _one_of("strategy", strategy, ("quantile", "uniform"))
    if bins < 2:
        raise ValueError(f"bins must be 2 or more, not {bins}")
    edges = {}
    for column in _check(df, columns):
        known = _numbers(df, column).dropna()
        if known.nunique() < 2:
            raise ValueError(f"column {column!r} has fewer than two values: nothing to cut")
        ends = np.linspace(0, 1, bins + 1)[1:-1]
        cuts = known.quantile(ends).to_numpy() if strategy == "quantile" else known.min() + ends * np.ptp(known)
        edges[column] = np.unique(cuts)
    return Binned(df, edges)


def polynomial_features(df: pd.DataFrame, columns: list[str], degree: int = 2, interactions_only: bool = False) -> Step:
    """Learn nothing but which powers and products are made."""
    for column in _check(df, columns):
        if _numbers(df, column).isna().any():
            raise ValueError(f"column {column!r} has missing values; call fill_missing first")
    tool = _sklearn("preprocessing").PolynomialFeatures(degree, interaction_only=interactions_only, include_bias=False)
    return Transformed("polynomial_features", df, columns, tool, replaces=False)


def select_columns(df: pd.DataFrame, label: str = "", method: str = "general", threshold: float | None = None) -> Step:
    """Learn which columns are of no use."""
    _one_of("method", method, ("general", "variance", "tree"))
    _check(df, [], label)
    judged = [str(column) for column in df if column != label]
    if method == "general":
        useless = [column for column in judged if df[column].nunique(dropna=False) < 2]
        return Selected(df, judged, useless, "without any value, or with one only")
    numeric = [column for column in judged if is_numeric_dtype(df[column])]
    if not numeric:
        raise ValueError("no numeric column to judge; encode the categories first")
    plain = _plain(df, numeric)
    if method == "variance":
        least = 0.0 if threshold is None else threshold
        kept = [column for column in numeric if float(np.nanvar(plain[column])) > least]
        return Selected(
            df, numeric, [column for column in numeric if column not in kept], f"variance at most {least:g}"
        )
    if not label:
        raise ValueError("method 'tree' needs `label`")
    trees, target = _sklearn("ensemble"), _label(df, label)
    many = is_numeric_dtype(target) and target.nunique() > 20
    forest = (trees.RandomForestRegressor if many else trees.RandomForestClassifier)(n_estimators=100, random_state=0)
    forest.fit(plain.fillna(plain.median()).fillna(0.0), target)
    least = float(forest.feature_importances_.mean()) if threshold is None else threshold
    kept = [column for column, weight in zip(numeric, forest.feature_importances_, strict=True) if weight >= least]
    useless = [column for column in numeric if column not in kept]
    return Selected(df, numeric, useless, f"importance for {label} in a random forest below {least:.4g}")


def time_parts(df: pd.DataFrame, columns: list[str], parts: list[str] | None = None) -> Step:
    """Learn which parts of times vary."""
    for part in parts or ():
        _one_of("parts", part, PARTS)
    found = {}
    for column in _check(df, columns):
        times = _times(df, column)
        found[column] = parts or [part for part in PARTS if _part(times, part).nunique() > 1]
    return Timed(df, found)


STEPS = {
    function.__name__: function
    for function in (
        fill_missing, scale_columns, encode_categories, encode_target, cross_categories, group_statistics, bin_columns,
        polynomial_features, select_columns, time_parts,
    )
}  # fmt: skip


@register_plugin
class DataScience(Plugin):
    def __call__(self, *args: Any, **kwargs: Any) -> tuple[pd.DataFrame, Step]:
        df = args[0] if args else kwargs.get("df")
        if not isinstance(df, pd.DataFrame):
            raise TypeError(f"{self.name}: the first argument is a DataFrame, not {type(df).__name__}")
        step = STEPS[self.name](*args, **kwargs)
        own = getattr(step, "own", None)
        return (step.apply(df) if own is None else df.assign(**dict(own.items()))), step


def _sklearn(module: str) -> Any:
    """Import a module of scikit-learn at the first use: it takes a second, and is an extra."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        raise ImportError("scikit-learn is missing; install it with: pip install 'tw-autogen[ml]'") from error


def _check(df: pd.DataFrame, columns: list[str], label: str = "") -> list[str]:
    if isinstance(columns, str):
        raise TypeError(f"expected a list of columns, such as [{columns!r}], not text")
    for column in [*columns, *([label] if label else [])]:
        if column not in df:
            raise KeyError(f"no column {column!r}; the frame has {', '.join(map(repr, df.columns))}")
    if label and label in columns:
        raise ValueError(f"{label!r} is the label; leave it out of the columns")
    return columns


def _one_of(name: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise ValueError(f"{name}: {word!r} is none of {', '.join(known)}")


def _numbers(df: pd.DataFrame, column: str) -> pd.Series:
    if not is_numeric_dtype(df[column]):
        raise TypeError(f"column {column!r} is {df[column].dtype}, not numeric; convert or encode it first")
    return df[column].astype("float64")


def _plain(df: pd.DataFrame, columns: list[str], *, text: bool = False) -> pd.DataFrame:
    """Give columns as scikit-learn takes them: numbers as float64 or, as categories, as text; gaps as NaN."""
    if not text:
        return df[columns].astype("float64")
    plain = {
        column: [np.nan if gap else _word(value) for value, gap in zip(df[column], df[column].isna(), strict=True)]
        for column in columns
    }
    return pd.DataFrame(plain, index=df.index, dtype=object)


def _word(value: Any) -> str:
    """Spell a category; a whole number is the same whether its column has gaps, and so is of floats, or not."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _filled(column: pd.Series, value: Any) -> pd.Series:
    """Fill a column; one of whole numbers becomes one of floats where the value is none."""
    if column.dtype == object:
        filled = [value if gap else fill for fill, gap in zip(column, column.isna(), strict=True)]
        return pd.Series(filled, index=column.index, name=column.name, dtype=object)
    if is_numeric_dtype(column) and isinstance(value, float) and not value.is_integer():
        column = column.astype("Float64" if pd.api.types.is_extension_array_dtype(column) else "float64")
    return column.fillna(value)


def _label(df: pd.DataFrame, label: str) -> pd.Series:
    if df[label].isna().any():
        raise ValueError(f"the label {label!r} has missing values; leave those rows out first")
    return df[label]


def _times(df: pd.DataFrame, column: str) -> pd.Series:
    if is_numeric_dtype(df[column]):
        raise TypeError(f"column {column!r} holds numbers, not times; convert it with pd.to_datetime and its unit")
    return pd.to_datetime(df[column])


def _part(times: pd.Series, part: str) -> pd.Series:
    if part == "is_weekend":
        return (times.dt.day_of_week >= 5).astype("Int64").mask(times.isna())
    return getattr(times.dt, "day_of_week" if part == "weekday" else part).astype("Int64")
