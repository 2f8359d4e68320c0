"""A virtual machine with NUMA nodes, which runs one command on the files of this machine.

The kernel of the virtual machine is Debian's, unpacked and not installed. The virtual machine sees
the files of this machine, read only. What the command writes goes to memory and does not stay,
except for files in the scratch folder. The distances of the NUMA nodes are only what QEMU tells the
kernel, because all of the memory is memory of this machine.

Sources: qemu(1) on -numa; the kernel's 9p.rst, overlayfs.rst and ramfs-rootfs-initramfs.rst.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
from typing import NamedTuple

from places.frame import Failed, Missing, environment, run, tool

# MODULES_HERE has the modules of this machine's kernel. If neither kvm_amd nor kvm_intel is among
# these modules, KVM starts only kernels that are made for this KVM.
KVM, MODULES_HERE = pathlib.Path("/dev/kvm"), pathlib.Path("/sys/module")
QEMU, BUSYBOX, KERNEL = "qemu-system-x86_64", "busybox", "linux-image-amd64"
# The order of loading: a module needs only modules that come before it.
MODULES = (
    "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
    "netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay",
)  # fmt: skip
GIB_EACH = 1  # the memory of each NUMA node
DISTANCE = 21  # between two NUMA nodes; within one NUMA node Linux says 10
INIT = pathlib.Path(__file__).with_name("init.sh")
# On a busy machine that emulates another machine, timers are late. With the words about timers and
# watchdogs, the kernel does not give up because timers are late.
KERNEL_WORDS = "console=ttyS0 panic=-1 quiet no_timer_check nowatchdog mitigations=off"


class Layout(NamedTuple):
    """The sockets, cores and NUMA nodes of a machine.

    Parameters
    ----------
    smp : str
        The CPUs, as QEMU's option -smp has them.
    cpus : tuple of str
        The CPUs of each NUMA node; "" for a NUMA node that has only memory.
    """

    smp: str
    cpus: tuple[str, ...]


class Machine:
    """Runs commands, each on a virtual machine of its own, which begins and ends with the command.

    Parameters
    ----------
    folder : pathlib.Path
        The scratch folder, to which commands may write; a kernel that is there already is used.

    Raises
    ------
    Missing
        If QEMU, busybox or the kernel is not available.

    Attributes
    ----------
    has_kvm : bool
        Whether this processor runs the machine; else QEMU emulates one, which is much slower.
    versions : str
        The versions of QEMU and the kernel.
    """

    def __init__(self, folder):
        self._qemu = tool(QEMU, "qemu-system-x86")
        self._busybox = tool(BUSYBOX, "busybox-static")
        self._folder = folder
        runs_any = any((MODULES_HERE / name).exists() for name in ("kvm_amd", "kvm_intel"))
        self.has_kvm = runs_any and os.access(KVM, os.R_OK | os.W_OK)
        if not (folder / "linux").exists():
            _fetch_kernel(folder)
        self._make_initramfs()
        emulator = re.findall(r"version (\S+)", run(self._qemu, "--version").output)[0]
        kernel = next((folder / "kernel/lib/modules").iterdir()).name
        self.versions = f"QEMU {emulator}, Linux {kernel}"

    def _make_initramfs(self):
        """Pack the files that the kernel needs first: busybox, modules and process 1."""
        root = self._folder / "initramfs"
        shutil.rmtree(root, ignore_errors=True)
        for name in ("bin", "proc", "sys", "dev", "modules"):
            (root / name).mkdir(parents=True)
        shutil.copy(self._busybox, root / "bin")
        for number, name in enumerate(MODULES):
            found = next((self._folder / "kernel/lib/modules").rglob(f"{name}.ko"))
            shutil.copy(found, root / f"modules/{number:02}.ko")
        shutil.copy(INIT, root / "init")
        (root / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        with (self._folder / "initramfs.cpio").open("wb") as packed:
            words = self._busybox, "cpio", "-o", "-H", "newc"
            subprocess.run(words, input=names.encode(), stdout=packed, cwd=root, check=True,
                           stderr=subprocess.DEVNULL)  # fmt: skip

    def run(self, layout, *words, within_s=300, cwd="/", **extra):
        """Run a command on a machine of this layout, with these variables; return how it ended."""
        settings = [f"{name}={value}" for name, value in environment(**extra).items()]
        command = shlex.join(["exec", "env", "-i", "-C", str(cwd), *settings, *map(str, words)])
        (self._folder / "command").write_text(command)
        (self._folder / "code").unlink(missing_ok=True)
        done = run(*self._command(layout), within_s=within_s)
        try:
            return done._replace(code=int((self._folder / "code").read_text()))
        except FileNotFoundError:
            console = (self._folder / "console").read_text(errors="replace")
            seen = f"QEMU ended first, with code {done.code}: {done.output}{console[-600:]}"
            raise Failed(seen) from None

    def _command(self, layout):
        kvm, emulated = ("kvm", "host"), ("tcg,thread=multi", "max")
        way, processor = kvm if self.has_kvm else emulated
        return [
            self._qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-accel", way, "-cpu", processor, *_memory(layout),
            "-kernel", self._folder / "linux", "-initrd", self._folder / "initramfs.cpio",
            "-append", f"{KERNEL_WORDS} FOLDER={self._folder}",
            "-serial", f"file:{self._folder / 'console'}", "-serial", "stdio",
            *_shared("read", "/", "readonly=on"), *_shared("folder", self._folder, "readonly=off"),
        ]  # fmt: skip


def _fetch_kernel(folder):
    """Unpack Debian's kernel, without installing the kernel."""
    depends = run("apt-cache", "depends", KERNEL).output.split()
    names = [word for word in depends if word.startswith("linux-image-") and word != KERNEL]
    done = run("apt-get", "download", *names, cwd=folder, within_s=300)
    found = sorted(folder.glob("linux-image-*.deb"))
    if done.code or not names or not found:
        raise Missing(f"no kernel: apt-get download {KERNEL}: {done.output.strip()[-200:]}")
    run("dpkg-deb", "-x", found[0], folder / "kernel")
    found[0].unlink()
    image, *_ = (folder / "kernel/boot").glob("vmlinuz-*")
    image.rename(folder / "linux")


def _memory(layout):
    """Return QEMU's options for CPUs, for NUMA nodes, and for the memory of these nodes."""
    words = ["-smp", layout.smp, "-m", f"{GIB_EACH * len(layout.cpus)}G"]
    for number, cpus in enumerate(layout.cpus):
        here = f",cpus={cpus}" if cpus else ""
        words += ["-object", f"memory-backend-ram,id=memory{number},size={GIB_EACH}G"]
        words += ["-numa", f"node,nodeid={number}{here},memdev=memory{number}"]
        for other in range(number):
            words += ["-numa", f"dist,src={other},dst={number},val={DISTANCE}"]
    return words


def _shared(tag, folder, access):
    """Return QEMU's options for a folder of this machine that the virtual machine sees."""
    how = f"security_model=none,multidevs=remap,{access}"
    return ["-virtfs", f"local,path={folder},mount_tag={tag},{how}"]
