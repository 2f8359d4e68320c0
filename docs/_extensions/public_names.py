"""Every public name and variable of the package stands in the reference, or the build fails."""

import importlib
import re
from pathlib import Path

from sphinx.util import logging

logger = logging.getLogger(__name__)

MODULES = ("cobre_comm", "cobre_comm.random", "cobre_comm.testing")
VARIABLE = re.compile(r"\bCOBRE_[A-Z]+_[A-Z_]+[A-Z]\b")


def _check(app, env):
    documented = {name for name, *_ in env.get_domain("py").get_objects()}
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            if f"{module}.{name}" not in documented:
                logger.warning("the reference has no %s.%s", module, name)
    root = Path(env.srcdir).parent
    packages = root / "cobre_comm", root / "kernels"
    source = "".join(path.read_text() for one in packages for path in one.rglob("*.py"))
    page = Path(env.doc2path("reference/variables")).read_text()
    for name in sorted(set(VARIABLE.findall(source)) ^ set(VARIABLE.findall(page))):
        logger.warning("%s stands in the sources or in the reference, not in both", name)


def setup(app):
    """Look when all pages have been read."""
    app.connect("env-check-consistency", _check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
