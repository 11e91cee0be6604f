"""Print what each probe comes to: `python -m tests.kernel.sandbox.table [--starts 20] [--probe name …] [level …]`.

With more than one start it prints for each level how many of all got through; 1 is its exit code if any did.
"""

import argparse
import os
import sys

from tests.kernel.sandbox.levels import LEVELS, Level, ended_by_sandbox
from tests.kernel.sandbox.probes import PROBES


def main():
    """Try probes at levels; all of both by default."""
    names = [probe.name for probe in PROBES]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="*", choices=[[], *LEVELS], help="all by default")
    parser.add_argument("--probe", action="append", choices=names, help="may come again; all by default")
    parser.add_argument("--starts", type=int, default=1, help="of a kernel for each probe (%(default)s)")
    parser.add_argument("-v", action="store_true", help="show the errors that held ways off")
    wanted = parser.parse_args()
    probes = [probe for probe in PROBES if probe.name in (wanted.probe or names)]
    print("root" if os.geteuid() == 0 else "an ordinary user", flush=True)
    broken = 0
    for level in wanted.levels or LEVELS:
        with Level(level) as place:
            found = at(place, probes, wanted)
            broken += found if level != "off" else 0
    return int(broken > 0)


def at(place, probes, wanted):
    """Try probes at a level; give how many kernels a probe got out of."""
    broken = silent = 0
    for probe in probes:
        for start in range(wanted.starts):
            outcome = place.attempt(probe)
            through = place.through(probe, outcome)
            spoke = outcome.tried or ended_by_sandbox(probe, outcome)
            broken, silent = broken + bool(through), silent + (not spoke)
            if start == 0 or through or not spoke:
                mark = "BREACH" if through else "holds " if spoke else "SILENT"
                print(
                    f"{place.name:10} {mark} {probe.name:17} {len(outcome.how)}/{outcome.tried}  {outcome}", flush=True
                )
                if wanted.v:
                    for way, error in outcome.errors.items():
                        print(f"             {way}: {error}")
                if outcome.error:
                    print(f"             {outcome.error[-300:]}")
    tried = len(probes) * wanted.starts
    print(f"{place.name:10} {broken} breaches, {silent} silent, of {tried} kernels", flush=True)
    return broken + silent


if __name__ == "__main__":
    sys.exit(main())
