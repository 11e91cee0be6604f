"""Print what each probe comes to: `python -m tests.kernel.wall.table [level …] [probe …]`."""

import os
import sys

from tests.kernel.wall.levels import LEVELS, Level
from tests.kernel.wall.probes import PROBES


def main(words):
    """Try probes at levels; all of both by default."""
    names = {one.name for one in PROBES}
    for level in [one for one in words if one in LEVELS] or LEVELS:
        with Level(level) as place:
            for probe in PROBES:
                if names & set(words) and probe.name not in words:
                    continue
                outcome = place.attempt(probe)
                mark = "BREACH" if outcome.breach else "holds "
                print(f"{level:10} {mark} {probe.name:17} {len(outcome.how)}/{outcome.tried}  {outcome}")
                if "-v" in words:
                    for way, error in outcome.errors.items():
                        print(f"             {way}: {error}")
                if outcome.error:
                    print(f"             {outcome.error[-300:]}")


if __name__ == "__main__":
    print("root" if os.geteuid() == 0 else "an ordinary user")
    main(sys.argv[1:])
