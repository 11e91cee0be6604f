"""Makes `plugins/*.yaml`: the tariff of an invented harbour, one plugin for each fee, many of them alike."""

from __future__ import annotations

from pathlib import Path

import yaml

FEES: dict[str, tuple[str, dict[str, str], float, float]] = {
    "berth_fee": ("lying at a quay", {"length_m": "metres", "nights": "nights"}, 35, 0.42),
    "anchorage_fee": ("lying at anchor in the roads", {"gross_tonnage": "GT", "days": "begun days"}, 60, 0.003),
    "pilotage_fee": ("a pilot on the way in or out", {"gross_tonnage": "GT", "passages": "ways"}, 110, 0.021),
    "towage_fee": ("tugs that help a vessel", {"tugs": "number", "hours": "begun hours"}, 0, 640),
    "mooring_fee": ("linesmen who make fast or cast off", {"length_m": "metres", "calls": "times"}, 48, 0.9),
    "light_dues": ("lighthouses and buoys", {"gross_tonnage": "GT"}, 25, 0.031),
    "ice_breaking_fee": ("an ice breaker ahead", {"hours": "begun hours"}, 900, 1750),
    "dredging_levy": ("keeping the fairway deep", {"draught_m": "metres"}, 40, 31.5),
    "waste_water_fee": ("taking off sewage", {"cubic_metres": "m3"}, 75, 6.4),
    "oily_waste_fee": ("taking off sludge and bilge oil", {"cubic_metres": "m3"}, 140, 27.8),
    "garbage_fee": ("taking off solid refuse", {"cubic_metres": "m3"}, 30, 22.5),
    "fresh_water_fee": ("drinking water from the quay", {"cubic_metres": "m3"}, 18, 3.15),
    "shore_power_fee": ("electricity from the quay", {"kwh": "kWh"}, 65, 0.37),
    "bunker_fee": ("taking fuel on board", {"tonnes": "t"}, 80, 4.2),
    "lube_oil_fee": ("taking lubricants on board", {"litres": "l"}, 25, 0.12),
    "quay_crane_fee": ("a crane that loads or unloads", {"tonnes": "t", "hours": "begun hours"}, 150, 2.6),
    "forklift_fee": ("a forklift with its driver", {"hours": "begun hours"}, 20, 68),
    "warehouse_fee": ("keeping goods dry under a roof", {"pallets": "number", "days": "begun days"}, 12, 0.85),
    "cold_storage_fee": ("keeping goods frozen or cool", {"pallets": "number", "days": "begun days"}, 30, 2.95),
    "container_storage_fee": ("keeping containers in the yard", {"teu": "number", "days": "begun days"}, 0, 9.4),
    "dangerous_goods_fee": ("handling hazardous cargo", {"tonnes": "t"}, 260, 14.6),
    "heavy_lift_fee": ("a single piece above forty tonnes", {"tonnes": "t"}, 1200, 38),
    "weighing_fee": ("putting a lorry on the scales", {"lorries": "number"}, 5, 16),
    "fumigation_fee": ("gassing a hold against pests", {"cubic_metres": "m3"}, 310, 0.55),
    "customs_attendance_fee": ("an officer outside office hours", {"hours": "begun hours"}, 45, 92),
    "phytosanitary_fee": ("inspecting plants and timber", {"lots": "number"}, 38, 27),
    "passenger_fee": ("people who board or leave a ferry", {"passengers": "number"}, 0, 2.35),
    "luggage_fee": ("carrying suitcases to the terminal", {"pieces": "number"}, 4, 1.8),
    "car_ferry_fee": ("driving a car on a ferry", {"cars": "number"}, 0, 7.9),
    "parking_fee": ("leaving a car at the terminal", {"days": "begun days"}, 3, 8.5),
    "rail_shunting_fee": ("moving wagons on the quay's tracks", {"wagons": "number"}, 85, 23),
    "gate_pass_fee": ("a permit to enter the port", {"persons": "number"}, 10, 15),
    "security_fee": ("a guard at the gangway", {"hours": "begun hours"}, 0, 41),
    "fish_landing_fee": ("bringing a catch ashore", {"tonnes": "t"}, 15, 19.2),
    "fish_auction_fee": ("selling a catch at the hall", {"boxes": "number"}, 22, 0.75),
    "flake_ice_fee": ("ice for a catch", {"tonnes": "t"}, 8, 46),
    "boat_lift_fee": ("lifting a yacht out of the water", {"length_m": "metres"}, 90, 21),
    "winter_storage_fee": ("a yacht ashore over the winter", {"length_m": "metres", "beam_m": "metres"}, 120, 17.5),
    "mast_crane_fee": ("stepping or taking down a mast", {"masts": "number"}, 55, 70),
    "hull_cleaning_fee": ("washing a hull with high pressure", {"length_m": "metres"}, 35, 9.8),
    "diving_fee": ("a diver who looks at a propeller or a hull", {"hours": "begun hours"}, 400, 185),
    "crew_launch_fee": ("a boat that brings crew ashore", {"trips": "number"}, 20, 74),
    "slipway_fee": ("a trailer that is run into the water", {"launches": "number"}, 2, 13),
    "guest_mooring_fee": ("a visiting yacht at the marina", {"length_m": "metres", "nights": "nights"}, 6, 1.95),
}
"""Name: what is paid for, what it depends on with its unit, euros in any case, euros for each product of these."""


def spec(name: str) -> str:
    """Give one YAML."""
    what, amounts, base, rate = FEES[name]
    plain = {
        "name": name,
        "description": f"Compute by the harbour's tariff what is paid for {what}.",
        "code": "tariff",
        "parameters": [
            {"name": one, "type": "float", "required": True, "description": f"in {unit}"}
            for one, unit in amounts.items()
        ],
        "returns": [
            {"name": "euros", "type": "float", "description": "net"},
            {"name": "rule", "type": "str", "description": "how it was computed"},
        ],
        "configurations": {"amounts": list(amounts), "base": base, "rate": rate},
    }
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    folder = Path(__file__).with_name("plugins")
    for fee in FEES:
        (folder / f"{fee}.yaml").write_text(spec(fee), encoding="utf-8")
