"""``python -m tests.network.moved HOST...``: a rank of MPI moves to its host, and meets others."""

import os
import runpy
import sys

from tests.launch.command import PROGRAMS
from tests.network.hosts import move_to

rank = int(os.environ.get("PMIX_RANK") or os.environ["PMI_RANK"])
move_to(None, sys.argv[1 + rank])
sys.argv[1:] = ["meet"]
runpy.run_path(str(PROGRAMS / "wait.py"), run_name="__main__")
