"""One fault of the campaign: at any moment of a job, which a launcher may have started."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cobre_comm.testing.cases.faults import fault
from cobre_comm.testing.cases.faults.fault import REGION, STEP

START, LAST, CLOSE = "start", "last", "close"
MOMENTS = (START, STEP, REGION, CLOSE)


@dataclass(frozen=True)
class Fault(fault.Fault):
    """A kind of fault, the job and the rank that it strikes, and the moment.

    A kind that begins with ``two_`` befalls the next rank too. Further moments are while ranks meet
    (``start``), in a call that alone holds its communicator (``last``), and at the end (``close``).
    ``lasts_s`` is also how long a pause lasts.

    Attributes
    ----------
    start : str
        ``hand`` (by environment variables), ``run`` (``cobre-comm run``) or ``launch``.
    env : mapping
        Environment variables of all ranks.
    """

    start: str = "hand"
    env: Mapping = field(default_factory=dict)

    @property
    def victims(self):
        """The ranks that the fault strikes."""
        count = 2 if self.kind.startswith("two_") else 1
        return [(self.victim + n) % self.size for n in range(count)]
