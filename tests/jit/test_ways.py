"""A call holds its object, however it got the object; code of another version is not loaded."""

import pytest
from numba import njit

from cobre_comm.jit.types import OBJECT_TYPES
from cobre_comm.testing import run_ranks
from tests.command import python
from tests.grid import some
from tests.jit import ways

EACH = [(way, kind) for way in ways.WAYS for kind in ways.KINDS]
QUICK = [("list", "communicator"), ("dict", "region"), ("jitclass", "communicator")]


def test_every_kind_of_object_walks_the_ways():
    assert {cls.what.split()[-1] for cls in OBJECT_TYPES} == set(ways.KINDS)


@pytest.mark.parametrize(("way", "kind"), some(QUICK, EACH))
def test_a_call_holds_what_it_is_made_on_until_it_has_ended(pools, way, kind):
    """Rank 0 checks that the object is alive while a call waits; a crash fails the test, too."""
    assert pools.get("shm", 2).run(ways.walk_all, way, kind, timeout_s=200) == [{}, {}]


@njit
def _written(comm, region):
    region.part(0, 1)[:] = 7
    region.fence()
    return region.as_slice()[0]


def _signatures(comm):
    with comm.create_shared_region(comm.size) as region:
        assert _written(comm, region) == 7
    return [str(signature) for signature in _written.signatures]


@pytest.mark.slow
def test_a_function_that_takes_a_region_has_one_signature_on_all_backends_but_local():
    alone = {"COBRE_TCP_SHARE": "0"}
    backends = [("shm", 2, {}), ("tcp", 2, {}), ("tcp", 2, alone), ("shm", 1, {})]
    compiled = [run_ranks(name, size, _signatures, env=env) for name, size, env in backends]
    signatures = {signature for ranks in compiled for each in ranks for signature in each}
    assert len(signatures) == 1
    [[of_local]] = run_ranks("local", 1, _signatures)
    assert of_local not in signatures


# The last function, `by_another`, has no value of ours, neither as an argument nor in its own code:
# it calls `objmode_region`, which gets a region in an `objmode` block.
USER = """
import collections
import cobre_comm
import numba
from numba import njit, objmode, types
from numba.experimental import jitclass, structref

comm = cobre_comm.create_communicator()
region = comm.create_shared_region(2)
COMM, REGION = numba.typeof(comm), numba.typeof(region)
Named = collections.namedtuple("Named", "held number")

@structref.register
class StructType(types.StructRef):
    pass

class Struct(structref.StructRefProxy):
    def __new__(cls, held):
        return structref.StructRefProxy.__new__(cls, held)

@jitclass([("held", COMM)])
class Model:
    def __init__(self, held):
        self.held = held

structref.define_proxy(Struct, StructType, ["held"])
compiled = njit(cache=True)

def comm_of_python():
    return comm

def region_of_python():
    return region

@compiled
def argument(held):
    held.barrier()

@compiled
def of_tuple(holder):
    holder[0].barrier()

@compiled
def of_named_tuple(holder):
    holder.held.barrier()

@compiled
def of_list(holder):
    holder[0].barrier()

@compiled
def of_dict(holder):
    holder[7].barrier()

@compiled
def of_jitclass(holder):
    holder.held.barrier()

@compiled
def of_structref(holder):
    holder.held.barrier()

@compiled
def optional(held, is_given):
    given = held if is_given else None
    if given is not None:
        given.barrier()

@compiled
def returned(held):
    return held

@compiled
def generator(held):
    for _ in range(2):
        yield held.rank

@compiled
def fence(held):
    held.fence()

@compiled
def with_jitted(function, held):
    function(held)

@njit(types.void(types.FunctionType(types.void(COMM)), COMM), cache=True)
def first_class(function, held):
    function(held)

@compiled
def objmode_comm():
    with objmode(held=COMM):
        held = comm_of_python()
    held.barrier()

@compiled
def objmode_region():
    with objmode(held=REGION):
        held = region_of_python()
    return held.as_slice()[0]

@compiled
def objmode_drops():
    with objmode(held=COMM):
        held = comm_of_python()
    return held is held

@compiled
def by_another():
    return objmode_region()

table = numba.typed.Dict.empty(types.int64, COMM)
table[7] = comm
meet = njit(types.void(COMM))(lambda held: held.barrier())
calls = [
    (argument, comm), (of_tuple, (comm,)), (of_named_tuple, Named(comm, 1)),
    (of_list, numba.typed.List([comm])), (of_dict, table),
    (of_jitclass, Model(comm)), (of_structref, Struct(comm)),
    (optional, comm, True), (returned, comm), (generator, comm), (fence, region),
    (first_class, meet, comm), (with_jitted, meet, comm),
    (objmode_comm,), (objmode_region,), (objmode_drops,), (by_another,),
]
"""

PROGRAM = """
import sys
import cobre_comm.jit.types
if "another" in sys.argv:
    cobre_comm.jit.types.version_tag = lambda: "another"
import user
for function, *arguments in user.calls:
    function(*arguments)
    print(function.__name__, function.stats.cache_hits.total())
"""

# A jitclass and a jitted function have another type in each process, so numba never finds cached
# code for an argument of such a type.
NEVER_FOUND = {"of_jitclass", "with_jitted"}


@pytest.mark.slow
def test_no_code_of_another_version_is_loaded_and_that_of_this_one_is(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "user.py").write_text(USER)

    def hits(version):
        said = python(program, version, within_s=200).stdout
        return {line.split()[0]: int(line.split()[1]) for line in said.splitlines()}

    for version in ("this", "another"):
        compiled = hits(version)
        assert set(compiled.values()) == {0}
        assert hits(version) == {name: int(name not in NEVER_FOUND) for name in compiled}


@pytest.mark.parametrize("kind", ways.KINDS)
def test_an_object_whose_init_has_not_run_is_a_type_error(pools, kind):
    [sentences] = pools.get("local", 1).run(ways.half_made, kind)
    assert len(sentences) == 3
    assert all("__init__ has not run" in sentence for sentence in sentences)
