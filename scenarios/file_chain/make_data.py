"""Makes five sheets of a lighthouse's log; each says, in words of its own, which one is to be read next."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path

SEED = 53
KEEPERS = ("Marlow", "Quill", "Sato", "Teague")
WEATHER = ("calm", "fog until noon", "gale from the west", "light rain", "clear")
KEY = "HERON-62-QUAY"
OLD_KEY = "GANNET-17-PIER"


def _log(dice: random.Random, first: date, keepers: dict[int, str], trimmed: tuple[int, ...] = ()) -> str:
    """Write three weeks of a log, which is all that the beginning of a sheet shows."""
    lines = []
    for at in range(21):
        day = first + timedelta(days=at)
        lamp = "lamp trimmed twice" if at in trimmed else "lamp trimmed once"
        keeper = keepers.get(at) or dice.choice([name for name in KEEPERS if name not in keepers.values()])
        lines.append(f"{day:%d %B}: {dice.choice(WEATHER)}, {lamp}, {dice.randint(2, 19)} ships. Signed: {keeper}")
    return "\n".join(lines)


def sheets() -> dict[str, str]:
    """Give the text of each sheet by the name of its file, in the order in which they are to be read."""
    dice = random.Random(SEED)
    start = _log(dice, date(1911, 3, 1), {13: "Marlow"})
    marlow = _log(dice, date(1911, 4, 1), {}, trimmed=(2, 8, 11, 19))
    lamp = _log(dice, date(1911, 5, 1), {})
    green = _log(dice, date(1911, 6, 1), {})
    last = _log(dice, date(1911, 7, 1), {})
    return {
        "start.txt": f"{start}\n\nThe log goes on in the sheet that bears the name, in small letters, of the keeper "
        "who signed on 14 March. I do not say who it was; see above.\n",
        "marlow.txt": f"{marlow}\n\nTo whoever relieves me: count the days above on which the lamp was trimmed twice. "
        "The next sheet is called lamp, an underscore, and that count in digits.\n",
        "lamp_4.txt": f"{lamp}\n\nStores: the red chest holds 31 wicks, the green chest 27, the grey chest 44. "
        "The sheet to read now carries the colour of the chest with the fewest wicks.\n",
        "green.txt": f"{green}\n\nOil drawn: 118 pints in April, 96 in May, 69 in June. The last sheet has the total "
        "of the three for its name, and nothing else.\n",
        "283.txt": f"{last}\n\nThe tower's key word was {OLD_KEY} until the spring; that one opens nothing any more. "
        f"Since the new lock it is {KEY}. Here the log ends. Tell it to the one who sent you.\n",
    }


def write(folder: Path) -> None:
    """Write the sheets anew."""
    for name, text in sheets().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
