"""Run places and print their tables, or write these to pages: ``python -m places slurm dask``."""

import argparse
import contextlib
import importlib
import signal
import sys

from places import page
from places.frame import Missing, Place, scratch

PLACES = {
    "slurm": "places.slurm.place",
    "dask": "places.dask",
    "pythons": "places.pythons",
    "containers": "places.containers.place",
    "impi": "places.impi",
    "mpi-sppy": "places.mpi_sppy",
    "torchrun": "places.torchrun",
    "arm64": "places.arm64",
    "numa": "places.numa.place",
}


def main():
    """Run the named places; return 1 if a row failed, 3 if a place is not available here."""
    parser = argparse.ArgumentParser(prog="python -m places", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PLACE", help=f"of {', '.join(PLACES)}; all")
    parser.add_argument(
        "--keep", action="store_true", help="write the tables into docs/howto/places.md"
    )
    parser.add_argument(
        "--under", metavar="FOLDER", help="set up there, use what is set up there, and leave it"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(PLACES)
    if unknown:
        parser.error(
            f"no place is called {', '.join(sorted(unknown))}; there are {', '.join(PLACES)}"
        )
    # A process that a shell starts in the background ignores SIGINT, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        return max(_run(name, options) for name in options.names or PLACES)
    except KeyboardInterrupt:
        print("interrupted; what was set up is gone")
        return 130


def _run(name, options):
    place = Place(name)
    print(f"-- {name}", flush=True)
    try:
        with scratch(name, options.under) as folder, contextlib.ExitStack() as stack:
            place.versions = importlib.import_module(PLACES[name]).run_place(place, folder, stack)
    except Missing as reason:
        print(f"{name} cannot be had here: {reason}")
        return 3
    if options.keep:
        page.keep(place)
    failed = [row.what for row in place.rows if not row.good]
    count = f"{len(place.rows) - len(failed)} of {len(place.rows)} rows good"
    print(f"{count}, {place.seconds:.0f} s", *failed, sep="; not ", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
