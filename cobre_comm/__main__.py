"""``python -m cobre_comm`` is ``cobre-comm``."""

from cobre_comm.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
