"""Run tests; run those that fail once more, alone: `again.py NAME PYTEST_OPTION...`.

Exit with 0 if all have passed, at the first try or at the second: the file LIST gets a line for
each of the latter. A run that is no verdict on tests (nothing found, a wrong option, Ctrl-C) fails
at once, with the code of pytest. An error of collection fails twice.
"""

import json
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path("build/again")
LIST = FOLDER / "passed.txt"  # .ci/run shows it at the end
FAILED = 1  # pytest's code where some tests failed, and nothing else went wrong


def run(cache, *options):
    """Run pytest, which notes in a folder of its own which tests have failed; return its code."""
    words = ["-m", "pytest", "--no-loadscope-reorder", "-o", f"cache_dir={cache}", *options]
    return subprocess.run([sys.executable, *words], check=False).returncode


def failed(cache):
    """Return the names of the tests, or files, that failed and have not passed since."""
    path = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text())) if path.exists() else []


def main(name, *options):
    """Run tests at most twice; return the exit code."""
    cache = (FOLDER / name).absolute()
    shutil.rmtree(cache, ignore_errors=True)
    code = run(cache, *options)
    first = failed(cache)
    if code != FAILED or not first:
        return code
    print(f"once more, alone: {len(first)} tests", flush=True)
    # A worker of its own, so that a test that ends its process is a failure like any other.
    code = run(cache, *options, "-n", "1", "--last-failed", "--last-failed-no-failures", "none")
    left = failed(cache)
    with LIST.open("a") as file:
        file.writelines(f"{each}\n" for each in first if each not in left)
    if left:
        print("failed twice:", *left, sep="\n  ")
    return code or FAILED * bool(left)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
