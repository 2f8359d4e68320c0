"""The place: containers with little memory, few rights and no init."""

import json
import re
import statistics
import time

from places.containers.engine import Engine
from places.frame import (
    CASE,
    ROOT,
    Done,
    Failed,
    Missing,
    all_met,
    expect,
    run,
    same_hash,
    tool,
    wait_until,
)
from tests.network.hosts import CannotMakeHosts, Network

COBRE = "cobre-comm", "run", "-n", 2
HELLO = "/examples/hello_ranks.py"
STEPS = "/programs/steps.py"
SMALL = ("--shm-size=1m",)
READ_ONLY = "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--user=1000:1000"

JOB = ROOT / "docs/howto/containers/job.yaml"
FRESH = 5  # new containers, in each of which two jobs run
TRAINING = (
    "/examples/sddp/train.py /examples/sddp/cases/gen_h8_t12_k10.json --iterations 30 --quiet "
    "--out /tmp/r"
)
CUTS = r'"cuts_sha256": "(\w+)'
NO_PROC = "mount -t tmpfs none /proc; exec setpriv --reuid=1000 --regid=1000 --clear-groups"


def run_place(place, folder, stack):
    """Build the image and try it; return the versions."""
    engine = Engine(folder, stack)
    engine.import_debian()
    with place.row(
        "an image with compiled kernels", "podman build -f examples/Containerfile"
    ) as seen:
        done = engine.build()
        seen.append(re.findall(r"machine code: .*/(\S+)", done.output)[-1])
    small(engine, place)
    first_jobs(engine, place)
    endings(engine, place)
    other_users(engine, place)
    try:
        tool("ip", "iproute2")
        network = stack.enter_context(Network(2))
        two(engine, place, network)
        pods(engine, place, network, folder)
    except (CannotMakeHosts, Missing) as reason:
        print(f"left out: two containers: {reason}")
    return run("podman", "--version").output.strip()


def small(engine, place):
    """Run jobs with little memory and few rights."""
    rows = {
        "default seccomp, 64 MiB of /dev/shm": (),
        "read-only, no capability, a user without a home": READ_ONLY,
        "1 MiB of /dev/shm": SMALL,
    }
    for what, options in rows.items():
        command = " ".join(["podman run", *options, "cobre-comm run -n 2 hello_ranks.py"])
        with place.row(what, command) as seen:
            done = engine.run(*COBRE, HELLO, options=options)
            if "compiling kernels" in done.output:
                raise Failed("the kernels of the image were not taken")
            if options != SMALL:
                seen.append(f"{all_met(done, 2, 'shm')}, nothing compiled")
            else:
                expect("InitializationFailed" in done.output, done)
                seen.append(re.findall(r"InitializationFailed: .*", done.output)[0][:120])
    with place.row(
        "a region of 100 MiB in 64 MiB", "podman run cobre-comm run -n 2 region.py 100"
    ) as seen:
        done = engine.run(*COBRE, "/programs/region.py", 100)
        expect(done.output.count("raised AllocationFailed: 100 MiB") == 2, done)
        seen.append("AllocationFailed on both ranks")
    with place.row("SDDP: one hash", "podman run cobre-comm run -n 2 train.py") as seen:
        case = f"/examples/sddp/cases/{CASE.name}"
        script = ("cobre-comm run -n 2 /examples/sddp/train.py " + case
                  + " --quiet --iterations 20 --out /tmp/r && cat /tmp/r")  # fmt: skip
        done = engine.run("sh", "-c", script, within_s=500)
        expect(done.code == 0, done)
        seen.append(same_hash(re.findall(r'"cuts_sha256": "(\w+)', done.output)[0]))


def first_jobs(engine, place):
    """Run two jobs in each of some new containers, in which only /dev/shm is writable."""
    options = *READ_ONLY, "--read-only-tmpfs=false"
    for backend in ("shm", "tcp"):
        words = "env", "-u", "HOME", "cobre-comm", "run", "-n", 4, "--backend", backend
        command = " ".join(["podman run", *options, *map(str, words), "allreduce.py"])
        with place.row(
            f"the first job and the second one, {backend}, {FRESH} times", command
        ) as seen:
            told = []
            for _ in range(FRESH):
                program = "env", "-u", "HOME", "python3", "/programs/first_jobs.py", backend
                done = engine.run(*program, options=options)
                expect(done.code == 0, done)
                told.append(json.loads(done.output.splitlines()[-1]))
                if told[-1]["stderr"] or told[-1]["written"]:
                    raise Failed(str(told[-1]))
            seconds, cpu = (_medians(told, name) for name in ("seconds", "cpu"))
            seen.append("medians {:.2f} and {:.2f} s".format(*seconds))
            seen.append("of CPU time {:.2f} and {:.2f} s".format(*cpu))
            if cpu[0] > 1.2 * cpu[1]:  # seconds by the clock would count other work too
                raise Failed("; ".join(seen))
            seen.append("nothing on stderr, no file written")
    without_folder = *READ_ONLY, "--env=NUMBA_CACHE_DIR="
    words = "cobre-comm", "check", "--quick", "--backends", "shm"
    with place.row("cobre-comm check, a user without a home", " ".join(words)) as seen:
        done = engine.run(*words, options=without_folder, within_s=500)
        found = re.findall(r"All \d+ checks passed", done.output)
        expect(done.code == 0 and found, done)
        seen += found


def _medians(told, name):
    """Return the median of the first jobs, and the median of the second jobs."""
    return [statistics.median(one[name][number] for one in told) for number in range(2)]


def endings(engine, place):
    """Pause a container; in another one, where the launcher is process 1, kill a rank."""
    with place.row(
        "pause for 8 s, unpause", "COBRE_SHM_TIMEOUT_SECS=4; podman pause, unpause"
    ) as seen:
        options = "--name=paused", "--env=COBRE_SHM_TIMEOUT_SECS=4"
        job = engine.start(*COBRE, STEPS, 14, options=options)
        _met(job, 2)
        engine.tell("pause", "paused")
        time.sleep(8)
        engine.tell("unpause", "paused")
        said, _ = job.communicate(timeout=60)
        longest = re.findall(r"ended after \d+ steps, longest ([\d.]+) s", said)
        if len(longest) != 2 or max(map(float, longest)) < 7:
            raise Failed(said[-300:])
        seen.append(f"went on; longest pause {max(map(float, longest)):.0f} s")
    with place.row("a rank is killed, PID 1 is the launcher", "podman exec kill -9") as seen:
        job = engine.start(*COBRE, STEPS, 60, options=("--name=killed",))
        _met(job, 2)
        script = "import os,sys; [os.kill(int(p), 9) for p in sys.argv[1:2]]"
        listed = engine.tell("top", "killed", "pid", "args")
        victim = re.findall(r"(?m)^(\d+)\s+.*python\S* /programs/steps.py", listed)[-1]
        start = time.monotonic()
        engine.tell("exec", "killed", "python3", "-c", script, victim)
        said, _ = job.communicate(timeout=30)
        expect(
            job.returncode == 137 and "raised CollectiveFailed" in said, run("echo", said[-200:])
        )
        seen.append(
            f"the other rank raised; over after {time.monotonic() - start:.1f} s with code 137"
        )
        expect(not engine.tell("ps", "-q").strip(), run("echo", "a container is left"))


def other_users(engine, place):
    """Run ranks that cannot see the processes of other users."""
    hidden = "--security-opt=proc-opts=hidepid=2"
    with place.row(
        "no /proc of other users", f"podman run {hidden} cobre-comm run -n 2 ..."
    ) as seen:
        for backend in ("shm", "tcp"):
            done = engine.run(*COBRE, "--backend", backend, HELLO, options=[hidden, *READ_ONLY])
            seen.append(all_met(done, 2, backend))
    with place.row("no /proc at all", f"{NO_PROC} cobre-comm run -n 2 ...") as seen:
        for backend in ("shm", "tcp"):
            words = "sh", "-c", NO_PROC + ' "$@"', "sh", *COBRE, "--backend", backend, HELLO
            options = "--user=0", "--cap-add=SYS_ADMIN"
            seen.append(all_met(engine.run(*words, options=options), 2, backend))


def two(engine, place, network):
    """Run a job in two containers, each on a host of its own."""
    with place.row("two containers on a network", "cobre-comm run -n 2 --nnodes 2 in each") as seen:
        seen.append(all_met(_together(_on_nodes(engine, network, HELLO)), 4, "tcp"))
    with place.row("one of two containers is killed", "podman kill --signal KILL") as seen:
        first, other = _on_nodes(engine, network, STEPS, 100)
        _met(first, 2, "tcp")
        engine.tell("kill", "--signal", "KILL", "node1")
        start = time.monotonic()
        said = first.communicate(timeout=100)[0]
        other.communicate(timeout=30)
        raised = sorted(re.findall(r"rank \d raised .*", said))
        if len(raised) != 2 or first.returncode == 0:
            raise Failed(said[-300:])
        seen += [*raised, f"over after {time.monotonic() - start:.1f} s, nothing left"]
        expect(not engine.tell("ps", "-q").strip(), run("echo", "a container is left"))


def _together(jobs):
    """Wait for jobs that began together; return their outputs, and the largest exit code."""
    said = "".join(job.communicate(timeout=200)[0] for job in jobs)
    return Done(max(job.returncode for job in jobs), said)


def _on_nodes(engine, network, *program):
    """Start a container for each of two nodes."""
    jobs = []
    for node, host in enumerate(network.hosts):
        told = "--nnodes", 2, "--node-rank", node, "--coordinator", network.hosts[0].address
        options = "--env=COBRE_TCP_TOKEN=secret", f"--name=node{node}"
        jobs.append(engine.start("cobre-comm", "run", "-n", 2, *told, *program, options=options,
                                 network=f"ns:/run/netns/{host.name}"))  # fmt: skip
    return jobs


def pods(engine, place, network, folder):
    """Run the command of the Kubernetes page in two containers, as if in two pods; kill a rank."""
    shared = folder / "volume"
    shared.mkdir()
    shared.chmod(0o777)
    expected = engine.run("sh", "-c", f"cobre-comm run -n 2 {TRAINING} && cat /tmp/r")
    expect(expected.code == 0, expected)
    hashes = re.findall(CUTS, expected.output)
    with place.row("two pods of job.yaml", "its args, JOB_COMPLETION_INDEX=0 and 1") as seen:
        both = [_pod(engine, network, shared, number, HELLO) for number in range(2)]
        seen.append(all_met(_together(both), 8, "tcp"))
    ways = {"a pod is killed, the other one goes on": "--survive",
            "a pod is killed, and both are started again": ""}  # fmt: skip
    for what, survive in ways.items():
        with place.row(what, f"the same {survive}; podman kill --signal KILL") as seen:
            cuts = shared / f"cuts{survive}"
            checkpoint = f"--checkpoint /volume/{cuts.name} --checkpoint-every 5"
            program = f"{survive} {TRAINING} {checkpoint} {survive}; c=$?; cat /tmp/r; exit $c"
            first, other = (_pod(engine, network, shared, n, program) for n in range(2))
            wait_until(cuts.exists, 300, "a checkpoint")
            engine.tell("kill", "--signal", "KILL", "pod1")
            start = time.monotonic()
            other.communicate(timeout=60)
            said = first.communicate(timeout=200)[0]
            took = f"over after {time.monotonic() - start:.1f} s"
            if not survive:
                expect(first.returncode != 0, run("echo", said))
                first, other = (_pod(engine, network, shared, n, program) for n in range(2))
                said = first.communicate(timeout=200)[0]
                other.communicate(timeout=60)
            if first.returncode or re.findall(CUTS, said) != hashes:
                raise Failed(said[-300:])
            seen += ["the cuts of a training that lost nothing", took]


def _pod(engine, network, shared, number, program):
    """Start a container like a pod of the page's Job, on its own host, with another program."""
    [args] = re.findall(r"exec (cobre-comm run .*?) train\.py$", JOB.read_text(), re.DOTALL | re.M)
    settings = {"JOB_COMPLETION_INDEX": number, "COBRE_TCP_TOKEN": "secret"}
    options = [f"--env={name}={value}" for name, value in settings.items()]
    options += [f"--name=pod{number}", "--shm-size=1g", f"--volume={shared}:/volume"]
    options.append(f"--add-host=train-0.training:{network.hosts[0].address}")
    where = f"ns:/run/netns/{network.hosts[number].name}"
    command = f"{' '.join(args.split())} {program}"
    return engine.start("sh", "-c", command, options=options, network=where)


def _met(job, ranks, backend="shm"):
    """Read the output of a job until this many ranks have met."""
    while ranks:
        line = job.stdout.readline()
        if not line:
            raise Failed("the job ended before its ranks met")
        ranks -= f" on {backend}, " in line
