"""Every public name and variable of the package stands in the reference, or the build fails."""

import importlib
import re
from pathlib import Path

from sphinx.util import logging

from cobre_comm.old_names import OLD_NAMES

logger = logging.getLogger(__name__)

MODULES = ("cobre_comm", "cobre_comm.random", "cobre_comm.testing")
OLD = {name for names in OLD_NAMES.values() for name in names}  # the reference has the new names
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


def _is_old(app, what, name, value, skip, options):
    """Tell whether a member of a class is an old name; None leaves the choice to others."""
    return True if what == "class" and name in OLD else None


def setup(app):
    """Compare the names when all pages have been read."""
    app.connect("env-check-consistency", _check)
    app.connect("autodoc-skip-member", _is_old)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
