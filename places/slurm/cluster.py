"""Slurm on hosts made of namespaces: a head, where users type, and nodes with a slurmd each.

Every host has its own network, processes, host name and /dev/shm; all other files are shared. The
processes of a host end when the host is closed. The munge of these hosts has its own key and
socket, so a Slurm that this machine has is not touched.
"""

import contextlib
import pathlib
import secrets
import shutil
import subprocess

from places.frame import Missing, environment, expect, need_root, run, tool, wait_until
from tests.network.hosts import CannotMakeHosts, Network

CPUS = 4
PACKAGES = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "srun": "slurm-wlm",
    "munged": "munge",
    "ip": "iproute2",
}
CONF = """\
ClusterName=places
SlurmctldHost=h0({head})
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/slurmd.%n.log
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=3
SlurmdTimeout=10
TmpFS={folder}/tmp.%n
"""
PARTITION = "PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP\n"
NODE = "NodeName={name} NodeAddr={address} CPUs={cpus} RealMemory=4000\n"


class Cluster:
    """One Slurm, as long as the stack is open.

    Parameters
    ----------
    folder : pathlib.Path
        The scratch folder.
    nodes : int
        Number of nodes beside the head.
    stack : contextlib.ExitStack
        Ends the Slurm.
    """

    def __init__(self, folder, nodes, stack):
        need_root()
        for name, package in PACKAGES.items():
            tool(name, package)
        self.folder = folder
        try:
            self._network = stack.enter_context(Network(nodes + 1))
        except CannotMakeHosts as reason:
            raise Missing(f"no hosts of network namespaces here: {reason}") from None
        self.head, *self.nodes = self._network.hosts
        self._daemons, self._off = [], set()
        stack.callback(self._reap)
        self.has_pmix = self._link_pmix()
        self._configure()
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log",
                 "seed-file": "seed"}  # fmt: skip
        options = [f"--{name}={folder}/munge.{end}" for name, end in files.items()]
        self._start(self.head, tool("munged", "munge"), "--foreground", "--force", *options)
        wait_until((folder / "munge.socket").exists, 20, "munged's socket")
        self._start(self.head, tool("slurmctld", "slurmctld"), "-D")
        for number in range(1, nodes + 1):
            self.boot(number)
        self.wait_idle(nodes)

    def _link_pmix(self):
        """Give the library of PMIx the file name that Slurm's plugin looks for.

        Debian's package of the library has no file of that name. So a copy of the package's folder,
        with such a file in it, is mounted over the folder, on the hosts alone. Return whether this
        machine has PMIx.
        """
        found = sorted(pathlib.Path("/usr/lib").glob("*/pmix2/lib"))
        for folder in found:
            mine = self.folder / "pmix"
            shutil.copytree(folder, mine, symlinks=True)
            if not (mine / "libpmix.so").exists():  # it exists if libpmix-dev is installed
                (mine / "libpmix.so").symlink_to("libpmix.so.2")
            self._bind(mine, folder)
        return bool(found)

    def _bind(self, mine, theirs):
        """Mount a file or folder over another, on all hosts."""
        for host in [self.head, *self.nodes]:
            with host.inside():
                subprocess.run(["mount", "--bind", mine, theirs], check=True)

    def _configure(self):
        folder, hosts = self.folder, [self.head, *self.nodes]
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        conf = CONF.format(head=self.head.address, folder=folder)
        lines = ["127.0.0.1 localhost\n"]
        for number, host in enumerate(hosts):
            lines.append(f"{host.address} h{number}\n")
            if number:
                conf += NODE.format(name=f"h{number}", address=host.address, cpus=CPUS)
                (folder / f"spool.h{number}").mkdir()
                (folder / f"tmp.h{number}").mkdir()
        (folder / "hosts").write_text("".join(lines))
        (folder / "slurm.conf").write_text(conf + PARTITION)
        self._bind(folder / "hosts", "/etc/hosts")

    def _start(self, host, *words):
        with host.inside(), (self.folder / "daemons.log").open("a") as log:
            self._daemons.append(subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self._environment(), cwd=self.folder, start_new_session=True,
            ))  # fmt: skip

    def _environment(self, **extra):
        return environment(SLURM_CONF=str(self.folder / "slurm.conf"), **extra)

    def boot(self, number):
        """Start the slurmd of a node."""
        self._start(self.nodes[number - 1], tool("slurmd", "slurmd"), "-D", "-N", f"h{number}")

    def power_off(self, number):
        """End all processes of a node, and unplug its cable."""
        self.nodes[number - 1].unplug()
        self.nodes[number - 1].room.close()
        self._off.add(number)

    def _reap(self):
        """Close the hosts, which ends their daemons, and reap the daemons."""
        for host in [*self.nodes, self.head]:
            host.close()
        for daemon in self._daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)

    def run(self, *words, within_s=120, **extra):
        """Run a command on the head, as users do."""
        with self.head.inside():
            told = {
                "SLURM_CONF": str(self.folder / "slurm.conf"),
                "COBRE_TCP_TOKEN": "of this user",
            }
            return run(*words, within_s=within_s, cwd=self.folder, **told | extra)

    def run_here(self, *words):
        """Run a command on the host of this thread."""
        return run(*words, within_s=20, cwd=self.folder)

    def submit(self, script, *options, **extra):
        """Give a batch script to Slurm; return the job's number and the file of its output."""
        words = "sbatch", "--parsable", "--output=job.%j", *options, "--wrap", script
        done = self.run(*words, **extra)
        expect(done.code == 0, done)
        job = done.output.strip()
        return job, self.folder / f"job.{job}"

    def state(self, job):
        """Return the state of a job in Slurm's words, or "" if Slurm has forgotten the job."""
        return self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").output.strip()

    def wait_idle(self, nodes):
        """Wait until this many nodes are idle."""

        def idle():
            return self.run("sinfo", "-h", "-t", "idle", "-o", "%D").output.strip() == str(nodes)

        wait_until(idle, 40, f"{nodes} idle nodes")

    def left(self):
        """Return what jobs have left on nodes: processes, and names in /dev/shm.

        Nodes that are powered off are left out, because nothing runs on them.
        """
        found = []
        for number, host in enumerate(self.nodes, 1):
            if number in self._off:
                continue
            done = run(
                *host.room.command,
                "sh",
                "-c",
                "ls /dev/shm; cat /proc/[0-9]*/comm | grep -a python",
            )
            found += [f"h{number}: {line}" for line in done.output.splitlines()]
        return found
