"""Every fee of the harbour: so many euros in any case, and so many for each product of its amounts."""

from __future__ import annotations

from tw_autogen.plugin import Plugin, register_plugin


@register_plugin
class Tariff(Plugin):
    """One fee, as its YAML's `configurations` say."""

    def __call__(self, *args: float, **kwargs: float) -> tuple[float, str]:
        """Give the euros and the rule."""
        names, base, rate = self.config["amounts"], self.config["base"], self.config["rate"]
        given = {**dict(zip(names, args)), **kwargs}  # noqa: B905 - too many is told below
        if len(args) + len(kwargs) != len(names) or set(given) != set(names):
            raise TypeError(f"{self.name}({', '.join(names)}) is called with {', '.join(given) or 'nothing'}")
        product = 1.0
        for one in names:
            product *= given[one]
        return round(base + rate * product, 2), f"{base} + {rate} x {' x '.join(names)}"
