"""How often the plugin that is meant is among the first few: the pool and the queries beside this file."""

from pathlib import Path

import yaml

from tw_autogen.code_interpreter.plugin_selection import rank_plugins
from tw_autogen.plugin import PluginSpec

HERE = Path(__file__).parent


def pool():
    plain = yaml.safe_load((HERE / "plugins.yaml").read_text(encoding="utf-8"))
    return [PluginSpec(name, description, tags=tuple(tags)) for name, (description, *tags) in plain.items()]


def queries():
    return yaml.safe_load((HERE / "queries.yaml").read_text(encoding="utf-8"))


def recall(specs, asked, k, ranker=None):
    """Give the share of queries whose plugin is among the first k, and the queries for which it isn't."""
    missed = [
        (query, meant)
        for query, meant in asked
        if meant not in [specs[at].name for at, _ in rank_plugins(specs, query, ranker)[:k]]
    ]
    return 1 - len(missed) / len(asked), missed


def table(ranker=None):
    """Give recall@3 and recall@8 of each kind of query, and of all."""
    specs, kinds = pool(), queries()
    kinds = {**kinds, "all": [one for some in kinds.values() for one in some]}
    return {kind: tuple(round(recall(specs, some, k, ranker)[0], 3) for k in (3, 8)) for kind, some in kinds.items()}
