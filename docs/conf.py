"""The site: `make docs` builds it into build/docs/html, with warnings as errors."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import cobre_comm  # noqa: E402

project = "cobre_comm"
author = "The cobre_comm developers"
project_copyright = "The cobre_comm developers"
version = release = cobre_comm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "plain",  # the last two are ours, in _extensions/
    "public_names",
]
exclude_patterns = ["_extensions", "_static", "_templates", "figures"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    # Docstrings name types of Python and NumPy, whose documents a build without network cannot ask.
    (r"py:.*", r"(?!cobre_).*"),
]
highlight_language = "none"

myst_enable_extensions = ["deflist", "dollarmath", "substitution"]
myst_heading_anchors = 4
myst_substitutions = {"version": version}

autodoc_typehints = "none"  # numpydoc's sections name the types
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"  # "On this page" lists methods by their own names
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_prompt_text = "$ "

html_theme = "pydata_sphinx_theme"
html_title = "cobre_comm"
html_favicon = "_static/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
# Sections of the site that are a single page have no sidebar.
html_sidebars = {page: [] for page in ("start", "glossary", "changelog")}
html_theme_options = {
    "logo": {
        "text": "cobre_comm",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "navbar_start": ["navbar-logo", "version"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# The workflows set where the repository is, also for the package's metadata (hatch_build.py).
if repository := os.environ.get("COBRE_REPOSITORY"):
    html_theme_options["github_url"] = repository

# `make docs-external` asks other servers, but no servers that refuse programs, or want a login.
linkcheck_ignore = [r"https://ui\.perfetto\.dev.*"]
linkcheck_timeout = 15
