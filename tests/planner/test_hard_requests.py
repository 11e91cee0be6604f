"""Which code makes a request one whose answer `planner.verify: auto` checks."""

import pytest

from tw_autogen.planner.hard_requests import hard_because

HARD = {
    "both = a.merge(b, on='id')": "a join",
    "pd.merge_asof(a, b)": "a join",
    "a.join(b)": "a join",
    "pd.concat([a, b])": "a join",
    "late = orders[orders.customer.isin(members['id'])]": "a join",
    "pd.read_sql('select x from a join b on a.id = b.id', db)": "a join",
    "sm.OLS(y, X).fit()": "a model",
    "beta, *_ = np.linalg.lstsq(X, y, rcond=None)": "a model",
    "slope, b = np.polyfit(x, y, 1)": "a model",
    "r = scipy.stats.linregress(x, y)": "a model",
    "b = np.linalg.solve(X.T @ X, X.T @ y)": "a model",
    "from sklearn.metrics import r2_score": "a model",
    "a = pd.read_csv('a.csv')\nb = pd.read_csv('b.csv')": "several files",
    "for name in ['x/a.csv', 'x/b.csv']:\n    frames.append(pd.read_csv(base + name))": "several files",
    "for year in years:\n    pd.read_csv(f'sales-{year}.csv')": "several files",
    "frames = [pd.read_csv(p) for p in folder.glob('*.csv')]": "several files",
    "rules = open('manual.md').read()\nfees = json.load(open('fees.json'))": "several files",
    "%matplotlib inline\na = pd.read_csv('a.csv')\nb = pd.read_excel('b.xlsx')": "several files",
}
PLAIN = [
    "print(df.x.mean())",
    "lines = open('a.csv').readlines()\na = pd.read_csv('a.csv', skiprows=2)",
    "a = pd.read_csv('/data/a.csv')\nb = pd.read_csv('a.csv', nrows=3)",
    "a = pd.read_csv('a.csv')\na.describe().to_csv('out.csv')",
    "a = pd.read_csv('a.csv')\nplt.savefig('a.png')\nopen('notes.txt', 'w').write('x')",
    "print(', '.join(names), '-'.join(x))",
    "path = os.path.join(folder, name)\npd.read_csv(path)",
    "df[df.city.isin(['Oslo', 'Bergen'])]",
    "print('a select of things that join')",
    "def broken(:",
]


@pytest.mark.parametrize(
    ("code", "request_", "why"),
    [
        ("print(197015 / total)", "the share?", "copied numbers"),
        ("print(197015 / total)", "the share of 197,015?", ""),
        ("print(x * 10000, 20_000_000, 0.30415, 2024)", "the share?", ""),
    ],
)
def test_numbers_that_were_copied_from_what_was_printed_do(code, request_, why):
    assert hard_because([code], request=request_) == why


@pytest.mark.parametrize(("code", "why"), HARD.items())
def test_joins_models_and_several_files_make_a_request_hard(code, why):
    assert hard_because([code]) == why


@pytest.mark.parametrize("code", PLAIN)
def test_one_file_however_it_is_read_does_not(code):
    assert hard_because([code]) == ""


def test_tables_of_earlier_requests_count_where_they_are_used():
    earlier = ["sales = pd.read_csv('sales.csv')", "costs = pd.read_excel('costs.xlsx')\nn = 3"]

    assert hard_because(["print(sales.x.sum() - costs.x.sum())"], earlier) == "several files"
    assert hard_because(["print(sales.x.sum() * n)"], earlier) == ""
    assert hard_because(["b = pd.read_csv('b.csv')\nprint(sales.x.sum() - b.x.sum())"], earlier) == "several files"


def test_files_that_several_cells_of_a_request_read_are_counted_together():
    assert hard_because(["a = pd.read_csv('a.csv')", "b = pd.read_csv('b.csv')"]) == "several files"
    assert hard_because(["a = pd.read_csv('a.csv')", "a = pd.read_csv('a.csv', sep=';')"]) == ""


def test_long_literals_and_texts_take_no_time_and_raise_nothing(cpu_seconds):
    before = cpu_seconds()

    assert hard_because(["x = 0x" + "f" * 5000]) == ""
    assert hard_because([f"q = {'select from ' * 20_000!r}"]) == ""
    assert hard_because([f"q = {'select from ' * 20_000 + 'x join y'!r}"]) == "a join"
    assert cpu_seconds() - before < 5  # without bounds: hours
