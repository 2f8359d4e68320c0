"""The place: torchrun of a PyTorch, on one machine and on two hosts."""

import re
import subprocess
import sys

from places.frame import (
    HELLO,
    STEPS,
    Failed,
    Missing,
    all_met,
    environment,
    kill_one,
    run,
    tool,
    trained,
)
from tests.network.hosts import CannotMakeHosts, Network

SECRET = {"COBRE_TCP_TOKEN": "of this job"}
# On Python 3.11, PyTorch 1.13 cannot read its own defaults of these two options. So each option has
# a value here, which concerns worker 9, which does not exist.
WORKAROUND = "--redirects", "9:1", "--tee", "9:1"
ONE = *WORKAROUND, "--nnodes", 1, "--master_port", 29511
RESTARTS = """import os, runpy, sys
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
    sys.exit("fails at first")
runpy.run_path(sys.argv[1], run_name="__main__")"""


def run_place(place, folder, stack):
    """Run jobs; return the versions."""
    torchrun = tool("torchrun", "python3-torch")
    start = torchrun, *ONE, "--nproc_per_node", 4

    def job(*words):
        program = "--no_python", sys.executable, *words
        return run(*start, *program, within_s=400, cwd=folder, **SECRET)

    with place.row("4 ranks", "torchrun --nproc_per_node 4 hello_ranks.py") as seen:
        seen.append(all_met(job(HELLO), 4, "tcp"))
    with place.row("SDDP: one hash", "torchrun --nproc_per_node 4 train.py") as seen:
        seen.append(trained(job, folder / "result.json"))
    with place.row("a worker fails, and is started again", "torchrun --max_restarts 1") as seen:
        done = run(torchrun, *ONE, "--max_restarts", 1, "--nproc_per_node", 4, "--no_python",
                   sys.executable, "-c", RESTARTS, HELLO, cwd=folder, **SECRET)  # fmt: skip
        seen.append(f"{all_met(done, 4, 'tcp')} at the second try")
    with place.row("a rank is killed", "kill -9 of one rank of 4") as seen:
        seen.append(kill_one([*start, "--no_python", sys.executable], 4, **SECRET))
    try:
        tool("ip", "iproute2")
        _on_hosts(place, folder, torchrun, stack.enter_context(Network(2)).hosts)
    except (CannotMakeHosts, Missing) as reason:
        print(f"left out: two hosts: {reason}")
    code = (
        "import torch, platform; print(torch.__version__, 'of Python', platform.python_version())"
    )
    return f"PyTorch {run('/usr/bin/python3', '-c', code).output.strip()}"


def _on_hosts(place, folder, torchrun, hosts):
    """Run a job by two agents of torchrun, each on a host, with two ranks on each host."""
    told = *WORKAROUND, "--nnodes", 2, "--nproc_per_node", 2, "--master_addr", hosts[0].address
    with place.row("two hosts", "torchrun --nnodes 2 --node_rank ... --master_addr ...") as seen:
        agents = []
        for rank, host in enumerate(hosts):
            words = torchrun, *told, "--master_port", 29511, "--node_rank", rank, "--no_python"
            with host.inside():
                agents.append(subprocess.Popen(
                    [str(word) for word in (*words, sys.executable, STEPS, 2)], cwd=folder,
                    text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    env=environment(**SECRET),
                ))  # fmt: skip
        said = "".join(agent.communicate(timeout=120)[0] for agent in agents)
        found = re.findall(r"rank \d of 4 on tcp, \d of 2", said)
        if len(found) != 4 or said.count("ended after") != 4:
            raise Failed(said[-300:])
        seen.append("ranks that share memory: 2 + 2")
