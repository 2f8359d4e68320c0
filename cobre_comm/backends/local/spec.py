"""The specification of the ``local`` backend."""

from cobre_comm.backends.spec import BackendSpec

LOCAL = BackendSpec(
    name="local",
    number=0,
    why_not=lambda: "",
)
