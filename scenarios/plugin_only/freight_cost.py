"""What a parcel costs."""

from tw_autogen import register_plugin

BASE = {"home": 4.2, "europe": 9.5, "world": 17.0}
PER_KILOGRAM = {"home": 0.65, "europe": 1.8, "world": 6.25}


@register_plugin
def freight_cost(kilograms: float, zone: str) -> float:
    """Price of one parcel in euros."""
    if zone not in BASE:
        raise ValueError(f"no zone {zone!r}; there are {', '.join(BASE)}")
    if not 0 < kilograms <= 30:
        raise ValueError(f"{kilograms} kg can't be sent; it must be more than 0 and at most 30")
    return round(BASE[zone] + PER_KILOGRAM[zone] * kilograms, 2)
