"""The version of the compiled code: a hash of our sources.

numba's cache knows only the source file of the function it stores, but a kernel inlines half of
this package. Every kernel therefore takes its memory as a type whose name carries this hash. After
an upgrade the signature is another one, and the cache never serves what an older version compiled.
"""

import functools
import hashlib
import pathlib
import uuid


def kernel_sources():
    """Return every source file of this package."""
    return list(pathlib.Path(__file__).parents[2].rglob("*.py"))


def hash_of(sources):
    """Return the hexadecimal hash of source files; of none (a zip), one that never comes again."""
    digest = hashlib.sha256(b"" if sources else uuid.uuid4().bytes)
    for path in sorted(sources):
        digest.update(b"\0".join([*map(str.encode, path.parts[-3:]), path.read_bytes()]))
    return digest.hexdigest()[:16]


@functools.cache
def source_hash():
    """Return the hash of this package."""
    return hash_of(kernel_sources())
