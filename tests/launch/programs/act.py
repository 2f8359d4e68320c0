"""``ACTION [RANK...] [FILE...]``: the named ranks act when all files exist; the others sleep."""

import os
import pathlib
import signal
import subprocess
import sys
import time


def say_what_is_heard(number, frame):
    os.write(1, f"heard {number}\n".encode())


VARIABLES = ("COBRE_SHM_RANK", "COBRE_TCP_RANK", "PMI_RANK", "PMIX_RANK")
rank = next((int(os.environ[name]) for name in VARIABLES if name in os.environ), 0)
action, actors = sys.argv[1], [int(word) for word in sys.argv[2:] if word.isdigit()]
# the files for which the named ranks wait
go = [pathlib.Path(word) for word in sys.argv[2:] if not word.isdigit()]

if action == "environment":
    for name, value in sorted(os.environ.items()):
        print(f"{name}={value}")
elif action == "flags":
    print(sys.flags.dev_mode, sys.warnoptions, sys._xoptions.get("int_max_str_digits"), __name__,
          __file__, sys.path[0])  # fmt: skip
elif action == "affinity":
    print(f"cores {sorted(os.sched_getaffinity(0))}")
elif action == "read":
    print(f"read {sys.stdin.read()!r}")
elif action == "lines":
    for number in range(int(sys.argv[2])):
        print(f"rank {rank} line {number} " + "x" * (number % 70))
        print(f"error {rank} line {number}", file=sys.stderr)
elif action == "terminal":
    print("50%", end="\r", flush=True)
    for file in (sys.stdout, sys.stderr):
        print("terminal", file.isatty(), os.get_terminal_size(file.fileno()).columns, file=file)
elif action == "pieces":
    for word in ("a rank ", f"{rank} speaks ", "slowly"):
        print(word, end="", flush=True)
        time.sleep(0.05)
elif action == "flood" and rank == 1:
    for _ in range(int(sys.argv[2])):
        os.write(int(sys.argv[3]), b"flood " + b"y" * 9_993 + b"\n")
elif action == "flood":
    print("a drop")
elif action == "boast":
    while rank != 1 and not go[0].exists():
        time.sleep(0.01)
    print("job 7 died, while others waited for it", file=sys.stderr, flush=True)
    if rank == 1:
        go[0].touch()
        os._exit(3)
    time.sleep(0.1)  # until rank 1 has ended
    sys.exit(5)
elif action == "children":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print(f"ready {rank} {os.getpid()} {child.pid}")
    time.sleep(60)
elif action == "fork":
    if os.fork() == 0:
        raise ValueError(f"bad number in a child of rank {rank}")
    os.wait()
elif action == "stubborn":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, say_what_is_heard)
    print(f"ready {rank} {os.getpid()}")
    time.sleep(60)
elif action == "count":
    counted = []

    def count(number, frame):
        counted.append(number)
        say_what_is_heard(number, frame)

    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, count)
    print(f"ready {rank} {os.getpid()}")
    while signal.SIGTERM not in counted:
        time.sleep(0.01)
elif rank in actors:
    while not all(path.exists() for path in go):
        time.sleep(0.01)
    if action == "exit":
        sys.exit(3)
    if action == "raise":
        raise ValueError(f"bad number on rank {rank}")
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "finish":
        sys.exit(0)
elif action == "finish":
    time.sleep(0.6)
    print("still here")
else:
    print(f"ready {rank} {os.getpid()}")
    time.sleep(60)
