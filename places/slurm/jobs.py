"""Jobs on a Slurm of four nodes: the commands of users, signals and faults."""

import json
import re
import sys
import time

from places.frame import CASE, HELLO, ROOT, SHOWN, STEPS, TRAIN, Failed, all_met, expect, wait_until

PYTHON = sys.executable
MPIS = {"pmi2": "mpich", "pmix": "openmpi"}
# This training takes some seconds for 30 iterations: long enough to lose a rank meanwhile.
TRAINING = f"{TRAIN} {ROOT / 'examples/sddp/cases/gen_h8_t12_k10.json'} --iterations 30"
OUT = "OUT_FILE"  # in a step, it stands for the option that names the file for the result
WAYS_OF_PMIX = {"PMIX_MCA_gds": "hash"}  # PMIx's own shared memory is not tried in this place


def rows(cluster, place):
    """Add all rows to the table."""
    without_mpi(cluster, place)
    training(cluster, place)
    with_mpi(cluster, place)
    signals(cluster, place)
    faults(cluster, place)
    losses(cluster, place)


def nothing_left(cluster):
    """Check that jobs have left nothing on the nodes; return a note that says so."""
    wait_until(lambda: not cluster.left(), 20, f"nodes as before ({cluster.left()[:3]})")
    return "nothing left"


def without_mpi(cluster, place):
    """Run jobs by `srun` alone, without an MPI."""
    with place.row("tasks of four nodes", "srun -N 4 -n 8 python hello_ranks.py") as seen:
        seen.append(all_met(cluster.run("srun", "-N", 4, "-n", 8, PYTHON, HELLO), 8, "tcp"))
        seen.append(nothing_left(cluster))
    command = (
        "SLURM_HOSTFILE=hosts COBRE_TCP_COORDINATOR=h2 srun -N 3 -n 7 -m arbitrary "
        "python steps.py 0"
    )
    with place.row("3, 3 and 1 tasks, rank 0 on the second node", command) as seen:
        order = cluster.folder / "order"
        order.write_text("h2\nh2\nh2\nh1\nh1\nh1\nh3\n")
        done = cluster.run("srun", "-N", 3, "-n", 7, "-m", "arbitrary", PYTHON, STEPS, 0,
                           SLURM_HOSTFILE=str(order), COBRE_TCP_COORDINATOR="h2")  # fmt: skip
        expect(done.code == 0, done)
        sizes = sorted(re.findall(r"rank (\d) of 7 on tcp, \d of (\d)", done.output))
        expect([int(size) for _, size in sizes] == [3, 3, 3, 3, 3, 3, 1], done)
        seen.append("ranks that share memory: 3 + 3 + 1")
    with place.row(
        "two steps of a job at once", "sbatch: srun -n 4 ... & srun -n 4 ... & wait"
    ) as seen:
        step = f"srun --exact -N 2 -n 4 -c 1 {PYTHON} {STEPS} 2"
        job, output = cluster.submit(f"{step} & {step} & wait", "-N", "2", "-n", "8")
        await_end(cluster, job, 90)
        said = output.read_text()
        if (
            len(re.findall(r"rank \d of 4 on tcp", said)) != 8
            or len(re.findall("ended after", said)) != 8
        ):
            raise Failed(said[-300:])
        seen.append("each of 4 ranks, in one time")
    with place.row(
        "a launcher on each node", "srun -N 2 -n 2 cobre-comm run -n 2 --nnodes 2 ..."
    ) as seen:
        place_of_node = f"--node-rank $SLURM_NODEID --coordinator {cluster.nodes[0].address}"
        command = f"cobre-comm run -n 2 --nnodes 2 {place_of_node} {HELLO}"
        done = cluster.run("srun", "-N", 2, "-n", 2, "sh", "-c", command)
        done = done._replace(output=re.sub(r"(?m)^\[\d+\] ", "", done.output))
        seen.append(all_met(done, 4, "tcp"))


def training(cluster, place):
    """Train the example on several layouts of ranks; all must give the same cuts."""
    with place.row("SDDP: one hash", "srun -n 4 python examples/sddp/train.py") as seen:
        hashes = set()
        for tasks in ((1, 1), (1, 4), (2, 4)):
            out = cluster.folder / f"result.{tasks[0]}.{tasks[1]}.json"
            words = PYTHON, TRAIN, CASE, "--quiet", "--iterations", 20, "--out", out
            done = cluster.run("srun", "-N", tasks[0], "-n", tasks[1], *words, within_s=400)
            expect(done.code == 0, done)
            hashes.add(json.loads(out.read_text())["cuts_sha256"])
        if len(hashes) > 1:
            raise Failed(f"several: {hashes}")
        seen.append(f"1 rank, 1 x 4, 2 x 2: {hashes.pop()[:12]}")


def with_mpi(cluster, place):
    """Run jobs over MPIs to which srun offers a PMI."""
    for pmi, library in MPIS.items():
        for nodes, ranks in ((1, 2), (2, 4)):
            command = f"srun --mpi={pmi} -N {nodes} -n {ranks} python hello_ranks.py"
            with place.row(f"{library}, {nodes} x {ranks // nodes}", command) as seen:
                if pmi == "pmix" and not cluster.has_pmix:
                    raise Failed("not run: apt-get install libpmix2")
                done = cluster.run("srun", f"--mpi={pmi}", "-N", nodes, "-n", ranks, PYTHON, HELLO,
                                   within_s=100, MPI4PY_MPIABI=library, **WAYS_OF_PMIX)  # fmt: skip
                seen.append(all_met(done, ranks, "mpi"))
    cancel_all(cluster)


def cancel_all(cluster):
    """Cancel all jobs, also the jobs of a row that has failed."""
    cluster.run("scancel", "-u", "root")
    wait_until(lambda: not cluster.run("squeue", "-h").output.strip(), 60, "an empty queue")


def await_end(cluster, job, within_s):
    """Wait until a job is over."""
    done = ("COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT", "")
    wait_until(lambda: cluster.state(job) in done, within_s, f"end of job {job}")


def started(cluster, seconds, *options, ranks=4, **extra):
    """Start a job of many steps on two nodes; return the job when its ranks have met."""
    settings = "".join(f"{name}={value} " for name, value in extra.items())
    job, output = cluster.submit(
        f"{settings}srun {PYTHON} {STEPS} {seconds}", "-N", "2", "-n", str(ranks), *options
    )
    met(output, ranks)
    return job, output


def met(output, ranks):
    """Wait until the output file of a job says that so many ranks have met."""

    def said():
        text = output.read_text() if output.exists() else ""
        return len(re.findall(r"rank \d of \d on tcp", text)) >= ranks

    wait_until(said, 100, "a job whose ranks have met")


def signals(cluster, place):
    """Cancel, stop, suspend and requeue jobs."""
    with place.row("scancel", "scancel JOB") as seen:
        job, output = started(cluster, 60)
        start = time.monotonic()
        cluster.run("scancel", job)
        await_end(cluster, job, 30)
        if "CANCELLED" not in output.read_text():
            raise Failed(output.read_text()[-300:])
        seen += ["Slurm says CANCELLED", f"over after {time.monotonic() - start:.1f} s"]
        seen.append(nothing_left(cluster))
    with place.row(
        "a stop before the end", "sbatch --signal=USR1@... ; COBRE_COMM_GRACEFUL=SIGUSR1"
    ) as seen:
        job, output = started(cluster, 60, COBRE_COMM_GRACEFUL="SIGUSR1")
        cluster.run("scancel", "--signal=USR1", job)
        await_end(cluster, job, 30)
        steps = set(re.findall(r"stopped after (\d+) steps", output.read_text()))
        if len(steps) != 1 or len(re.findall("stopped after", output.read_text())) != 4:
            raise Failed(output.read_text()[-300:])
        seen.append("all 4 ranks stopped after the same step")
    with place.row(
        "suspend for 8 s, resume", "COBRE_TCP_TIMEOUT_SECS=4; scontrol suspend, resume"
    ) as seen:
        job, output = started(cluster, 12, COBRE_TCP_TIMEOUT_SECS="4")
        cluster.run("scontrol", "suspend", job)
        cluster.run("sleep", 8)
        if cluster.state(job) != "SUSPENDED":
            raise Failed(f"it is {cluster.state(job)}")
        cluster.run("scontrol", "resume", job)
        await_end(cluster, job, 40)
        longest = re.findall(r"ended after \d+ steps, longest ([\d.]+) s", output.read_text())
        if len(longest) != 4:
            raise Failed(output.read_text()[-300:])
        seen.append(
            f"went on; longest pause {max(map(float, longest)):.0f} s; a collective may take 4 s"
        )
    with place.row("requeue", "scontrol requeue JOB") as seen:
        job, output = started(cluster, 8, "--requeue", "--begin=now")
        output.unlink()
        cluster.run("scontrol", "requeue", job)
        nothing_left(cluster)
        wait_until(lambda: begins_again(cluster, job), 60, "a job that runs again")
        met(output, 4)
        await_end(cluster, job, 90)
        if len(re.findall("ended after", output.read_text())) != 4:
            raise Failed(output.read_text()[-300:])
        seen.append("ended, began again, ended well")


def begins_again(cluster, job):
    """Tell whether a requeued job runs again; if Slurm has put the job off, let the job begin now.

    Slurm puts the job off when all of the first run of the job has ended. The begin time is set
    only then, because the scheduler passes over a job whose begin time is set again and again.
    """
    if "BeginTime" in cluster.run("squeue", "-h", "-j", job, "-o", "%r").output:
        cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    return cluster.state(job) == "RUNNING"


def faults(cluster, place):
    """Lose a rank, then lose a node."""
    with place.row("a rank is killed", "kill -9 of one rank, without --kill-on-bad-exit") as seen:
        job, output = started(cluster, 60)
        with cluster.nodes[1].inside():
            victim = cluster.run_here(
                "pgrep", "-n", "-f", "places/programs/steps.py"
            ).output.strip()
            cluster.run_here("kill", "-9", victim)
        start = time.monotonic()
        await_end(cluster, job, 30)
        took = f"over after {time.monotonic() - start:.1f} s"
        raised = re.findall(r"raised CollectiveFailed: ranks \((\d),?\)", output.read_text())
        if len(raised) != 3 or len(set(raised)) != 1:
            raise Failed(output.read_text()[-300:])
        seen += [f"3 ranks raised CollectiveFailed, naming rank {raised[0]}", took]
        seen.append(nothing_left(cluster))
    with place.row("a node goes down", "power off node 2 of 2, srun --no-kill") as seen:
        step = f"COBRE_TCP_TIMEOUT_SECS=10 srun --no-kill {PYTHON} {STEPS} 120"
        job, output = cluster.submit(step, "-N", "2", "-n", "4", "--no-kill", "-w", "h3,h4")
        met(output, 4)
        cluster.power_off(4)
        start = time.monotonic()
        wait_until(
            lambda: len(re.findall("raised", output.read_text())) >= 2, 60, "errors of 2 ranks"
        )
        raised = re.findall(r"(rank \d raised .*)", output.read_text())
        seen += [*sorted(raised), f"known after {time.monotonic() - start:.1f} s"]
        cancel_all(cluster)
        seen.append(nothing_left(cluster))


def losses(cluster, place):
    """Lose a rank, or a node, in trainings; the cuts must be those of an undisturbed training."""

    def kill_a_rank():
        with cluster.nodes[1].inside():
            victim = cluster.run_here("pgrep", "-n", "-f", TRAINING).output.strip()
            cluster.run_here("kill", "-9", victim)

    keep, survive = "--no-kill --kill-on-bad-exit=0", f"{TRAINING} {OUT} --survive"
    launcher = (
        "cobre-comm run -n 2 --nnodes 2 --node-rank $SLURM_NODEID "
        f"--coordinator {cluster.nodes[0].address}"
    )
    below = f"-N 2 -n 2 {keep} sh -c '{launcher}"
    checkpoint = f"{TRAINING} {OUT} --checkpoint {cluster.folder / 'cuts'} --checkpoint-every 5"
    shown = f"srun {keep} cobre-comm run ..."
    expected = trained(cluster, f"srun {PYTHON} {TRAINING} {OUT}")[0]
    for what, command, step, lose in (
        ("a rank is killed: tasks go on", f"srun {keep} python train.py --survive",
         f"srun {keep} {PYTHON} {survive}", kill_a_rank),
        ("the same, below launchers", f"{shown} --survive train.py --survive",
         f"srun {below} --survive {survive}'", kill_a_rank),
        ("a rank is killed: all start again",
         "for try in 1 2 3; do srun python train.py && break; done",
         f"for try in 1 2 3; do srun {PYTHON} {checkpoint} && break; done", kill_a_rank),
        ("a node goes down: tasks go on", f"srun {keep} python train.py --survive",
         f"srun {keep} {PYTHON} {survive}", lambda: cluster.power_off(2)),
    ):  # fmt: skip
        with place.row(what, command) as seen:
            found, state, took_s = trained(cluster, step, lose)
            if found != expected:
                raise Failed(f"other cuts: {found}, not {expected}")
            seen += ["the cuts of a training that lost nothing", f"over after {took_s:.1f} s"]
            seen += [f"Slurm says {state}", nothing_left(cluster)]


def trained(cluster, step, lose=None):
    """Train on two nodes with two ranks each; meanwhile ``lose`` ends a rank or a node.

    Returns the hash of the cuts, Slurm's word for the state of the job, and the seconds from the
    loss to the end of the job.
    """
    out = cluster.folder / f"lost.{len(list(cluster.folder.glob('lost.*')))}"
    step = step.replace(OUT, f"--out {out}")
    options = "-N", "2", "-n", "4", "--no-kill", "-w", "h1,h2"
    settings = {"COBRE_TCP_TIMEOUT_SECS": "10"}
    job, output = cluster.submit(step, *options, **settings)
    if lose is not None:
        wait_until(
            lambda: output.exists() and re.search(r"(?m)^(\[0\] )? *5 ", output.read_text()),
            100,
            "five iterations",
        )
        lose()
    lost_at = time.monotonic()
    await_end(cluster, job, 150)
    if not out.exists():
        raise Failed(output.read_text()[-SHOWN:])
    cuts = json.loads(out.read_text())["cuts_sha256"]
    return cuts, cluster.state(job) or "nothing more", time.monotonic() - lost_at
