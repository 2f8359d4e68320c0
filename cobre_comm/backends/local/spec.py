"""The specification of the ``local`` backend."""

from cobre_comm.backends.spec import BackendSpec

LOCAL = BackendSpec(
    name="local",
    number=0,
    about="one process",
    module="cobre_comm.backends.local.backend",
    class_name="LocalBackend",
    why_not=lambda: "",
)
