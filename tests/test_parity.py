"""`parity.yaml`: each of TaskWeaver's features has tests that exist, or says why it is left out."""

import ast
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent
AREAS = yaml.safe_load((HERE / "parity.yaml").read_text(encoding="utf-8"))
FEATURES = {f"{area}.{name}": feature for area, features in AREAS.items() for name, feature in features.items()}


@pytest.mark.parametrize("feature", FEATURES.values(), ids=FEATURES.keys())
def test_a_feature_has_tests_that_exist_or_says_why_it_is_left_out(feature):
    assert set(feature) <= {"what", "tests", "differs"}
    assert feature["what"]
    assert feature["tests"] or feature["differs"].startswith("Left out")
    for test in feature["tests"]:
        file, _, name = test.partition("::")
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)], test


def test_no_feature_is_written_twice():
    words = [feature["what"] for feature in FEATURES.values()]

    assert len(FEATURES) >= 60
    assert len(words) == len(set(words))
