"""The version of the compiled code: a hash of our sources.

numba's cache knows only the source file of the function it stores, but a kernel inlines half of
this package. Every kernel therefore takes its memory as a type whose name carries this hash. After
an upgrade the signature is another one, and the cache never serves what an older version compiled.
"""

import functools
import hashlib
import pathlib


@functools.cache
def source_hash():
    """Return the hexadecimal hash of every source file of this package."""
    digest = hashlib.sha256()
    root = pathlib.Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
