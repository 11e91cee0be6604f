"""The plugins that prepare tables for models: fitted on training rows, applied to others, never changing a frame."""

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tw_autogen.code_interpreter.task_type import TASK_TYPES
from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import find_plugins
from tw_autogen.plugin.spec import NO_DEFAULT, read_spec
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.testing import load_plugin

pytest.importorskip("sklearn", reason="the extra `ml` is not installed")

SPECS = {
    spec.name: spec for spec in map(read_spec, sorted(shipped_folder("plugins").glob("*.yaml")))
    if spec.code == "data_science"
}  # fmt: skip


@pytest.fixture
def call(tmp_path):
    """Give a function that calls a plugin by its name."""
    return lambda name, *args, **kwargs: load_plugin(SPECS[name], tmp_path)(*args, **kwargs)


@pytest.fixture
def train():
    return pd.DataFrame(
        {
            "city": ["Oslo", "Rome", "Oslo", None, "Rome", "Oslo", "Bern", "Bern"],
            "kind": ["a", "b", "b", "a", "a", "b", "b", "a"],
            "price": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0, 7.0, 8.0],
            "size": [10, 20, 30, 40, 50, 60, 70, 80],
            "sold_at": pd.date_range("2024-01-05 10:00", periods=8, freq="9h").astype(str),
            "same": 1,
            "sold": [0, 1, 0, 1, 1, 0, 1, 0],
        },
        index=[3, 1, 4, 15, 9, 2, 6, 5],
    )


@pytest.fixture
def test():
    return pd.DataFrame(
        {
            "city": ["Rome", "Lima", None],
            "kind": ["a", "b", "c"],
            "price": [np.nan, 100.0, -100.0],
            "size": [20, 30, 40],
            "sold_at": ["2030-07-06 12:00", "2031-01-01 00:00", None],
            "same": [1, 2, 3],
        },
        index=[7, 7, 8],
    )


CALLS = {
    "fill_missing": {"label": "sold"},
    "scale_columns": {"columns": ["price", "size"]},
    "encode_categories": {"columns": ["city", "kind"]},
    "encode_target": {"columns": ["city", "kind"], "label": "sold", "folds": 2},
    "cross_categories": {"columns": ["city", "kind"]},
    "group_statistics": {"by": ["city"], "columns": ["price"]},
    "bin_columns": {"columns": ["price"], "bins": 3},
    "polynomial_features": {"columns": ["size"]},
    "select_columns": {"label": "sold"},
    "time_parts": {"columns": ["sold_at"]},
}


def test_every_one_is_called_here():
    assert set(CALLS) == set(SPECS)


@pytest.mark.parametrize("name", CALLS)
def test_no_frame_is_changed_and_index_and_label_stay(call, train, test, name):
    before, untouched = train.copy(), test.copy()

    changed, step = call(name, train, **CALLS[name])
    other = step.transform(test)

    pd.testing.assert_frame_equal(train, before)
    pd.testing.assert_frame_equal(test, untouched)
    assert changed is not train
    assert not changed.equals(train)
    assert changed.index.tolist() == train.index.tolist()
    assert other.index.tolist() == test.index.tolist()
    pd.testing.assert_series_equal(changed["sold"], train["sold"])
    assert [one for one in changed if one != "sold"] == list(other)
    assert repr(step).startswith(f"{name}, fitted on 8 rows: ")


@pytest.mark.parametrize("name", [name for name in CALLS if name != "encode_target"])
def test_training_rows_come_out_the_same_from_transform(call, train, name):
    changed, step = call(name, train, **CALLS[name])

    pd.testing.assert_frame_equal(step.transform(train), changed)


@pytest.mark.parametrize("name", CALLS)
def test_other_rows_do_not_change_what_was_learned(call, train, test, name):
    _, step = call(name, train, **CALLS[name])
    alone = step.transform(test.iloc[[0]])

    pd.testing.assert_frame_equal(step.transform(test).iloc[[0]], alone)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "select_columns"])
def test_a_missing_column_is_named(call, train, name):
    _, step = call(name, train, **CALLS[name])

    with pytest.raises(KeyError, match=f"no column {step.needs[0]!r}; the frame has 'x'"):
        step.transform(pd.DataFrame({"x": [1]}))


@pytest.mark.parametrize("name", SPECS)
def test_the_yaml_says_what_the_python_takes(name):
    (spec,) = find_plugins([SPECS[name]], shipped=None)
    source = spec.source()
    steps = {}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), steps)  # the file registers one class only
    signature = inspect.signature(steps["STEPS"][name])

    assert [parameter.name for parameter in spec.parameters] == list(signature.parameters)
    for parameter in spec.parameters:
        default = signature.parameters[parameter.name].default
        assert parameter.required is (default is inspect.Parameter.empty)
        if not parameter.required:
            assert parameter.default is not NO_DEFAULT
            assert parameter.default == (list(default) if isinstance(default, tuple) else default)
    assert set(spec.tags) <= set(TASK_TYPES)
    compile(spec.stub(), "stub", "exec")


def test_gaps_are_filled_with_what_the_training_rows_say(call, train, test):
    changed, step = call("fill_missing", train, label="sold")
    mean, _ = call("fill_missing", train, ["price"], "mean")
    constant, _ = call("fill_missing", train, ["city"], "constant", "none")

    assert step.values == {"city": "Oslo", "price": 5.0}
    assert not changed[["city", "price"]].isna().any().any()
    assert step.transform(test).iloc[0].price == 5.0
    assert mean.price.iloc[2] == pytest.approx(33 / 7)
    assert constant.city.iloc[3] == "none"


@pytest.mark.parametrize("dtype", ["Int64", "float64", "Float64", "boolean", "category", "object"])
def test_gaps_of_any_dtype_are_filled(call, dtype):
    values = [True, False, True, None] if dtype == "boolean" else [1, 2, 4, None]
    df = pd.DataFrame({"a": pd.Series(values, dtype=dtype)})

    changed, _ = call("fill_missing", df)

    assert changed.a.notna().all()
    assert changed.a.iloc[3] == (1 if dtype in ("category", "object", "boolean") else 2)


@pytest.mark.parametrize(
    ("method", "first", "last"),
    [("standard", -1.5275252, 1.5275252), ("minmax", 0.0, 1.0), ("maxabs", 0.125, 1.0), ("robust", -1.0, 1.0)],
)
def test_scales(call, train, method, first, last):
    changed, step = call("scale_columns", train, ["size"], method)

    assert changed["size"].iloc[[0, -1]].tolist() == pytest.approx([first, last])
    assert step.transform(pd.DataFrame({"size": [45]}))["size"].notna().all()


def test_categories_become_numbers_and_unseen_ones_have_a_meaning(call, train, test):
    onehot, step = call("encode_categories", train, ["city"])
    ordinal, by_order = call("encode_categories", train, ["kind"], "ordinal")
    counted, by_count = call("encode_categories", train, ["city"], "count")

    assert [one for one in onehot if one.startswith("city_")] == ["city_Bern", "city_Oslo", "city_Rome", "city_nan"]
    assert "city" not in onehot
    assert step.transform(test)[["city_Bern", "city_Oslo", "city_Rome", "city_nan"]].to_numpy().tolist() == [
        [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    assert ordinal.kind.tolist() == [0, 1, 1, 0, 0, 1, 1, 0]
    assert by_order.transform(test).kind.tolist() == [0, 1, -1]
    assert counted.city_count.tolist() == [3, 2, 3, 1, 2, 3, 2, 2]
    assert by_count.transform(test).city_count.tolist() == [2, 0, 1]


def test_whole_numbers_are_the_same_categories_with_and_without_gaps(call):
    _, step = call("encode_categories", pd.DataFrame({"k": [1, 2]}), ["k"])

    assert step.transform(pd.DataFrame({"k": [2.0, np.nan]})).to_numpy().tolist() == [[0, 1], [0, 0]]


def test_the_label_of_a_row_is_not_in_its_own_target_mean(call):
    df = pd.DataFrame({"id": [str(at) for at in range(40)], "y": np.arange(40.0)})

    folded, step = call("encode_target", df, ["id"], "y")
    leaking, _ = call("encode_target", df, ["id"], "y", folds=0, smooth=0.0)

    assert abs(folded.id_target_mean.corr(folded.y)) < 0.6
    assert leaking.id_target_mean.tolist() == df.y.tolist()
    assert step.transform(pd.DataFrame({"id": ["new"]})).id_target_mean.tolist() == [pytest.approx(19.5)]


def test_target_means_of_two_classes(call):
    df = pd.DataFrame({"k": ["a", "a", "b", "b"] * 10, "y": ["no", "no", "yes", "no"] * 10})

    _, step = call("encode_target", df, ["k"], "y", smooth=0.0)

    assert step.transform(pd.DataFrame({"k": ["a", "b", "c"]})).k_target_mean.tolist() == [0.0, 0.5, 0.25]


def test_groups_get_their_statistics_and_unseen_ones_none(call, train, test):
    changed, step = call("group_statistics", train, ["city", "kind"], ["size"], ["mean", "count"])

    assert changed.size_mean_by_city_kind.tolist() == [10.0, 20.0, 45.0, 40.0, 50.0, 45.0, 70.0, 80.0]
    assert changed.size_count_by_city_kind.tolist() == [1, 1, 2, 1, 1, 2, 1, 1]
    assert step.transform(test).size_mean_by_city_kind.iloc[0] == 50.0
    assert step.transform(test).size_mean_by_city_kind.isna().tolist() == [False, True, True]


def test_bins_hold_all_numbers_and_gaps_stay_gaps(call, train, test):
    changed, step = call("bin_columns", train, ["price"], bins=3)
    uniform, _ = call("bin_columns", train, ["size"], bins=7, strategy="uniform")

    assert changed.price_bin.isna().tolist() == [False, False, True, False, False, False, False, False]
    assert changed.price_bin.dropna().tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert step.transform(test).price_bin.dropna().tolist() == [2, 0]
    assert uniform.size_bin.tolist() == [0, 1, 2, 3, 4, 5, 6, 6]


def test_crosses_powers_and_parts_of_time(call, train, test):
    crossed, _ = call("cross_categories", train, ["city", "kind"])
    powers, _ = call("polynomial_features", train, ["size", "same"], 2)
    products, _ = call("polynomial_features", train, ["size", "same"], interactions_only=True)
    timed, times = call("time_parts", train, ["sold_at"])

    assert crossed.city_x_kind.tolist()[:4] == ["Oslo|a", "Rome|b", "Oslo|b", "missing|a"]
    assert [power for power in powers if power not in train] == ["size^2", "size same", "same^2"]
    assert powers["size^2"].tolist() == [one**2 for one in train["size"]]
    assert [product for product in products if product not in train] == ["size same"]
    assert times.parts == {"sold_at": ["day", "day_of_year", "weekday", "is_weekend", "hour"]}
    assert timed.sold_at_weekday.tolist()[:3] == [4, 4, 5]
    assert times.transform(test).sold_at_is_weekend.tolist()[:2] == [1, 0]
    assert times.transform(test).sold_at_hour.isna().tolist() == [False, False, True]


def test_columns_of_no_use_go(call):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "c": rng.normal(size=200) * 0.01})
    df = df.assign(empty=np.nan, word="x", y=(df.a > 0).astype(int))

    general, _ = call("select_columns", df)
    variance, _ = call("select_columns", df.drop(columns="empty"), "y", "variance", 0.01)
    tree, step = call("select_columns", df.drop(columns="empty"), "y", "tree")

    assert list(general) == ["a", "b", "c", "y"]
    assert list(variance) == ["a", "b", "word", "y"]
    assert list(tree) == ["a", "word", "y"]
    assert list(step.transform(df[["a", "b"]])) == ["a"]


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "message"),
    [
        ("scale_columns", {"columns": "price"}, TypeError, r"expected a list of columns, such as \['price'\]"),
        ("scale_columns", {"columns": ["city"]}, TypeError, "column 'city' is .*, not numeric"),
        ("scale_columns", {"columns": ["no"]}, KeyError, "no column 'no'; the frame has 'city'"),
        ("scale_columns", {"columns": ["size"], "method": "log"}, ValueError, "method: 'log' is none of standard, "),
        ("polynomial_features", {"columns": ["size", "size^2"]}, KeyError, "no column 'size\\^2'"),
        ("fill_missing", {"strategy": "constant"}, ValueError, "strategy 'constant' needs `value`"),
        ("fill_missing", {"columns": ["city"], "strategy": "mean"}, TypeError, "column 'city' is .*, not numeric"),
        ("encode_target", {"columns": ["sold"], "label": "sold"}, ValueError, "'sold' is the label; leave it out"),
        ("encode_target", {"columns": ["kind"], "label": "city"}, ValueError, "the label 'city' has missing values"),
        ("encode_target", {"columns": ["kind"], "label": "sold", "folds": 1}, ValueError, "folds must be 0, or from 2"),
        ("encode_target", {"columns": ["kind"], "label": "sold_at"}, ValueError, "has 8 values; a number or two"),
        ("cross_categories", {"columns": ["city"]}, ValueError, "order must be from 2 to the number of columns"),
        ("group_statistics", {"by": ["city"], "columns": ["size"], "statistics": ["mod"]}, ValueError, "'mod' is none"),
        ("bin_columns", {"columns": ["same"]}, ValueError, "column 'same' has fewer than two values"),
        ("bin_columns", {"columns": ["size"], "bins": 1}, ValueError, "bins must be 2 or more"),
        ("polynomial_features", {"columns": ["price"]}, ValueError, "'price' has missing values; call fill_missing"),
        ("select_columns", {"method": "tree"}, ValueError, "method 'tree' needs `label`"),
        ("time_parts", {"columns": ["size"]}, TypeError, "column 'size' holds numbers, not times"),
        ("time_parts", {"columns": ["sold_at"], "parts": ["era"]}, ValueError, "parts: 'era' is none of year, "),
    ],
)
def test_what_cannot_be_done_is_raised_with_a_remedy(call, train, name, arguments, kind, message):
    with pytest.raises(kind, match=message):
        call(name, train, **arguments)


def test_a_column_without_any_value_cannot_be_filled_and_something_else_is_no_frame(call):
    with pytest.raises(ValueError, match="column 'a' has no value at all"):
        call("fill_missing", pd.DataFrame({"a": [None, None]}))
    with pytest.raises(TypeError, match="fill_missing: the first argument is a DataFrame, not list"):
        call("fill_missing", [1])


def test_too_few_rows_for_the_folds_are_told_in_words_of_the_plugin(call):
    df = pd.DataFrame({"kind": list("aabbab"), "sold": [0, 1, 0, 1, 0, 1]})

    with pytest.raises(
        ValueError, match="folds must be at most 3, the rows of the more frequent value of 'sold', or 0; not 5"
    ):
        call("encode_target", df, ["kind"], "sold")
    assert call("encode_target", df, ["kind"], "sold", folds=3)[0].shape == (6, 3)


def test_they_run_in_a_real_kernel_from_training_rows_to_a_score(tmp_path):
    plugins = find_plugins(["fill_missing", "encode_target", "scale_columns"], shipped=shipped_folder("plugins"))
    code = """
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
rows = pd.DataFrame({"city": rng.choice(list("abcd"), 300), "size": rng.normal(50, 9, 300)})
rows["sold"] = ((rows.city.isin(["a", "b"])) ^ (rng.random(300) < 0.1)).astype(int)
rows.loc[::7, "size"] = np.nan
train, test = rows.iloc[:200], rows.iloc[200:]
train, fill = fill_missing(train, label="sold")
train, encode = encode_target(train, ["city"], "sold")
train, scale = scale_columns(train, ["size"])
test = scale.transform(encode.transform(fill.transform(test)))
from sklearn.linear_model import LogisticRegression
columns = ["city_target_mean", "size"]
LogisticRegression().fit(train[columns], train.sold).score(test[columns], test.sold) > 0.8
"""
    with LocalKernel(tmp_path) as kernel:
        for spec in plugins:
            kernel.load(spec.loadable())
        execution = kernel.execute(code, seconds=90)

    assert execution.error == ""
    assert execution.result in ("True", "np.True_")


def test_without_scikit_learn_the_error_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['sklearn.preprocessing'] = None\n"
        "import pandas as pd\nfrom tw_autogen.testing import load_plugin\n"
        "load_plugin(sys.argv[1], sys.argv[2])(pd.DataFrame({'a': [1, 2]}), ['a'])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(SPECS["scale_columns"].path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert "ImportError: scikit-learn is missing; install it with: pip install 'tw-autogen[ml]'" in run.stderr


def test_a_column_that_is_there_already_is_not_overwritten(call, train):
    with pytest.raises(ValueError, match="there is a column 'kind_a' already; rename it first"):
        call("encode_categories", train.assign(kind_a=1), ["kind"])
