"""Run all steps of ``make release-check``, or the named ones."""

from __future__ import annotations

import argparse
import time

from release import conda, environments, files, upgrades

STEPS = {
    "build": (files.build, "sdist and wheel, twice in different folders: the same bytes"),
    "metadata": (files.check_metadata, "what PyPI and pip read of both"),
    "install": (environments.check_installs, "both, with the lowest and the newest dependencies"),
    "conda": (conda.check_conda, "the recipe is built and tested with a channel made of wheels"),
    "quick": (environments.run_quick, "the quick loop, with the lowest and the newest numba"),
    "upgrades": (upgrades.check, "another version never runs compiled code of this one"),
}


def main() -> None:
    """Run the steps in order; the first failure ends all."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    chosen = parser.parse_args().steps or list(STEPS)
    if unknown := set(chosen) - set(STEPS):
        parser.error(f"unknown steps: {', '.join(sorted(unknown))}")
    for name in chosen:
        step, what = STEPS[name]
        print(f"== {name}: {what}", flush=True)
        began = time.monotonic()
        step()
        print(f"   passed in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
