"""A /dev/shm of one's own: small, or watched for what is left in it."""

import functools
import pathlib

from tests.command import run

ROOT = pathlib.Path(__file__).parents[3]


def in_private_shm(size, command):
    mount = f'mount -t tmpfs -o size={size},mode=1777 tmpfs /dev/shm && exec "$@"'
    words = "unshare", "-m", "sh", "-c", mount, "sh", *command
    return run(*words, code=None, within_s=200, cwd=ROOT)


@functools.cache
def refusal():
    """Return why there can be none here, "" if there can."""
    try:
        done = in_private_shm("1m", ["true"])
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or "unshare failed"
