"""Runs the commands of pages, and compares what they print with what the pages show.

The block of a part ``<!-- output -->`` has commands, each after ``$ ``, and below each what it has
printed. The mark may have more words: ``exit 1``, the status of the last command; ``last 9``, how
many lines of an output stand on the page; ``changes``, if no two runs print the same: then only the
exit status is compared. If the page shows no output below the commands, the output is written anew.

The commands of a page run in a folder with copies of the files of the folder that is named as the
page. A command that fails ends the run. The commands also draw images of that folder on the page.
"""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from bench.report.text import filled

ROOT = Path(__file__).parents[1]
OF_ONE_RUN = re.compile(r"\b[\d.]+ (?:s|ms|us)\b|\bcobre-0-\w+|\b0x\w+|cobre_comm/.*, line \d+")
MARK = "\x01command\x01"
LIMIT_S = 600
# Variables that commands must not inherit from an earlier job, or from the machine that builds.
FOREIGN = re.compile(r"(COBRE|OMPI|PMI|SLURM|MPI4PY|NUMBA)_")
# Containers of builds run as root on few cores. Open MPI's own mpiexec would refuse both.
MPIEXEC = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def rerun(page, text):
    """Run all commands of a page; return its text with the output, and the folder of its images.

    An output on the page stays if the new one has the same lines, in any order, but for times.
    """
    source = page.with_suffix("")
    folder = ROOT / "build" / "docs" / "run" / f"{page.parent.name}-{page.stem}"
    shutil.rmtree(folder, ignore_errors=True)
    if source.is_dir():
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    folder.mkdir(parents=True, exist_ok=True)

    def make(kind, words, present):
        if kind != "output":
            return None
        options = dict(re.findall(r"(exit|last) (\d+)", words))
        commands = commands_of(present)
        status, output = _run(commands, folder)
        last = int(options["last"]) if "last" in options else None
        shown = _shown(commands, _tidied(output, folder), last)
        if status != int(options.get("exit", 0)):
            raise SystemExit(f"{page}: exit status {status}:\n{shown}")
        if len(re.findall("^job ", output, re.MULTILINE)) > 1:
            raise SystemExit(f"{page}: jobs of other programs would stand on this page:\n{shown}")
        made, present = _block(shown), present.strip()
        is_same = "changes" in words or _compared(made) == _compared(present)
        is_bare = present == _block("\n".join(f"$ {command}" for command in commands))
        return present if is_same and not is_bare else made

    return filled(text, make), folder


@functools.cache
def _alone():
    """Return the words that start a command in a PID namespace of its own; none if that fails.

    Then a command that shows all jobs of a user shows only the jobs of its page.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    command = ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc"]
    if shutil.which("unshare") is None:
        return []
    done = subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False)
    return [] if done.returncode else command


def _compared(block):
    """Return the lines of a block, sorted, and without what differs from run to run."""
    return sorted(OF_ONE_RUN.sub("...", block).split("\n"))


def commands_of(block):
    """Return the commands of a block; a command may have several lines."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)


def _run(commands, folder):
    """Run commands in one shell; return the exit status of the last one, and all output."""
    script = "".join(f"printf '{MARK}\\n'\n{command}\n" for command in commands)
    script = f"trap 'status=$?; wait; exit $status' EXIT\nset -e\n{script}"
    environment = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment.update(COLUMNS="100", NO_COLOR="1", PYTHONUNBUFFERED="1", TERM="dumb", **MPIEXEC)
    shell = subprocess.Popen(
        [*_alone(), "bash", "-c", script],
        cwd=folder, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = shell.communicate(timeout=LIMIT_S)
    except BaseException as error:  # also Ctrl-C, which does not reach the shell's session
        os.killpg(shell.pid, signal.SIGKILL)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        output, _ = shell.communicate()
    return shell.returncode, output


def _tidied(output, folder):
    """Return the output without paths of the machine that has run the commands."""
    compiled = r"cobre-comm: (compiling kernels|kernels compiled).*\n"
    output = re.sub(compiled, "", output.replace(f"{folder}/", ""))
    output = output.replace(str(folder), ".").replace(sys.prefix, ".venv")
    return output.replace(f"{ROOT}/cobre_comm/", "cobre_comm/")


def _block(text):
    return f"```console\n{text}\n```"


def _shown(commands, output, last):
    """Return the commands, each with its output, or with the last lines of its output."""
    blocks = output.split(f"{MARK}\n")[1:]
    lines = []
    for command, block in zip(commands, blocks, strict=False):
        printed = block.rstrip("\n").split("\n") if block.strip() else []
        if last is not None and len(printed) > last:
            printed = ["...", *printed[-last:]]
        lines += [f"$ {command}", *printed]
    return "\n".join(lines)
