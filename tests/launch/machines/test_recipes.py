"""The commands of docs/howto run, with replacements for programs that this machine lacks."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cobre_comm.processes.port import ReservedPort
from tests.command import run as run_command
from tests.launch.command import EXAMPLES, cobre, environment

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
SHELL = [
    block
    for page in sorted(HOWTO.glob("*.md"))
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.DOTALL)
]
SCONTROL = "#!/bin/bash\necho 127.0.0.1\necho second\n"
# Starts one process for each node.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((i = 0; i < SLURM_NNODES; i++)); do
  SLURM_NODEID=$i "$@" > task.$i &
  started+=($!)
done
status=0
for pid in "${started[@]}"; do wait "$pid" || status=$?; done
cat task.*
exit $status
"""

JOB = str(os.getpid())  # two runs of these tests on one machine need different ports

pytestmark = pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("openssl")), reason="needs bash and openssl"
)


def recipe(mark):
    [found] = [block for block in SHELL if mark in block]
    found = found.replace("$HOME/training", sys.prefix)
    return found.replace("train.py", str(EXAMPLES / "hello_ranks.py"))


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a recipe by bash, with our commands and the replacements."""
    places = {"srun": SRUN, "scontrol": SCONTROL}
    for name, text in places.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"

    def run(script, **variables):
        return run_command("bash", "-c", script, code=None, cwd=tmp_path, stdin=subprocess.DEVNULL,
                           env=environment(PATH=path, **variables))  # fmt: skip

    return run


def greetings(ranks):
    hello = [f"hello from rank {r} of {ranks} on tcp" for r in range(ranks)]
    return sorted([*hello, f"{ranks} ranks, whose numbers add up to {ranks * (ranks - 1) // 2}"])


def test_two_machines_by_hand(run):
    with ReservedPort() as reserved:
        told, start = recipe("read -rs"), recipe("--nnodes 2 --node-rank 0 --coordinator first")
        start = start.replace("first", f"127.0.0.1:{reserved.port}").replace("-n 8", "-n 2")
        first, second = start.splitlines()
        told = f"{{ {told.strip()}; }} <<EOF\n0123456789abcdef\nEOF"
        done = run(f"{told}\n{first} & {second} || exit 1\nwait $!")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line[4:] for line in done.stdout.splitlines()) == greetings(4)


def test_slurm_with_a_launcher_on_each_node(run):
    done = run(recipe("#SBATCH --cpus-per-task=32"), SLURM_JOB_ID=JOB, SLURM_NNODES="2",
               SLURM_CPUS_PER_TASK="2", SLURM_JOB_NODELIST="n[1-2]")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line[4:] for line in done.stdout.splitlines()) == greetings(4)


def test_every_recipe_is_shell_and_every_option_exists(run):
    known = cobre("run", "--help").stdout
    for block in SHELL:
        assert run(f"bash -n <<'EOF'\n{block}\nEOF").stderr == ""
        for command in re.findall(r"cobre-comm run((?:.*\\\n)*.*)", block):
            options = re.findall(r" (--[a-z-]+)", command)
            assert all(option in known for option in options), command
