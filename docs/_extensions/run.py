"""The directive ``run``: commands that are run when the site is built, with their real output.

The files of the folder that is named as the page lie in the working folder of its commands. A
command that fails ends them, and fails the build if ``:exit:`` says another status, 0 by default.
What a command prints never does: a busy machine builds the site too, later.
"""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
MARK = "\x01command\x01"
# What the ranks of an earlier job, or the machine that builds, would tell.
FOREIGN = re.compile(r"(COBRE|OMPI|PMI|SLURM|MPI4PY|NUMBA)_")

# Open MPI's own mpiexec refuses root, and more ranks than cores, as containers of builds have them.
MPIEXEC = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Run(SphinxDirective):
    """Show each line of the content as a command, and below it what it has printed."""

    has_content = True
    option_spec: ClassVar = {
        "exit": directives.nonnegative_int,
        "timeout": directives.positive_int,
        "last": directives.positive_int,
        "plot": directives.unchanged,
        "alt": directives.unchanged,
    }

    def run(self):
        """Return the block of commands and output, and the plot that they have drawn."""
        folder = self._folder()
        commands = "\n".join(self.content).replace("\\\n", "\\\0").split("\n")
        commands = [command.replace("\0", "\n") for command in commands]
        status, output = _run(commands, folder, self.options.get("timeout", 600))
        wanted = self.options.get("exit", 0)
        shown = _shown(commands, _tidied(output, folder), self.options.get("last"))
        if status != wanted:
            message = f"exit status {status} instead of {wanted}:\n{shown}"
            raise self.error(message)
        if len(re.findall("^job ", output, re.MULTILINE)) > 1:
            raise self.error(f"jobs of other programs would stand on this page:\n{shown}")
        block = nodes.literal_block(shown, shown, language="console", classes=["run"])
        self.set_source_info(block)
        return [block, *self._plot(folder)]

    def _folder(self):
        """Return the working folder of this page, new when its first command runs."""
        folder = ROOT / "build/docs/run" / self.env.docname.replace("/", "-")
        source = Path(self.env.doc2path(self.env.docname)).with_suffix("")
        if self.env.temp_data.get("run_folder") != str(folder):
            self.env.temp_data["run_folder"] = str(folder)
            shutil.rmtree(folder, ignore_errors=True)
            if source.is_dir():
                shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
            folder.mkdir(parents=True, exist_ok=True)
        for path in source.rglob("*.*"):
            if "__pycache__" not in path.parts:
                self.env.note_dependency(str(path))
        return folder

    def _plot(self, folder):
        name = self.options.get("plot")
        if name is None:
            return []
        page = Path(self.env.doc2path(self.env.docname)).parent
        uri = os.path.relpath(folder / name, page)
        return [nodes.image(uri=uri, alt=self.options.get("alt", name), classes=["plot"])]


@functools.cache
def _alone():
    """Return what starts a command among processes of its own, where this machine allows that.

    A page that shows all jobs of a user shows those of the page alone then.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    command = ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc"]
    if shutil.which("unshare") is None:
        return []
    done = subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False)
    return [] if done.returncode else command


def _run(commands, folder, timeout):
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
        output, _ = shell.communicate(timeout=timeout)
    except BaseException as error:  # also an interrupt: the shell has a session of its own
        os.killpg(shell.pid, signal.SIGKILL)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        output, _ = shell.communicate()
    return shell.returncode, output


def _tidied(output, folder):
    """Return the output without paths of the machine that has built the site."""
    compiled = r"cobre-comm: (compiling kernels|kernels compiled).*\n"
    output = re.sub(compiled, "", output.replace(f"{folder}/", ""))
    output = output.replace(str(folder), ".").replace(sys.prefix, ".venv")
    return output.replace(f"{ROOT}/cobre_comm/", "cobre_comm/")


def _shown(commands, output, last):
    blocks = output.split(f"{MARK}\n")[1:]
    lines = []
    for command, block in zip(commands, blocks, strict=False):
        printed = block.rstrip("\n").split("\n") if block.strip() else []
        if last is not None and len(printed) > last:
            printed = ["...", *printed[-last:]]
        lines += [f"$ {command}", *printed]
    return "\n".join(lines)


def setup(app):
    """Add the directive; pages with commands are read one after the other."""
    app.add_directive("run", Run)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
