"""The configuration of Sphinx for the documentation site (``make docs``)."""

from __future__ import annotations

import sys
from pathlib import Path

from docutils.nodes import TextElement, reference
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

sys.path.insert(0, str(Path(__file__).parent))

from python_api import PATHS, home_of
from sidebar import Sidebar

import swsearch

project = "swsearch"
author = "the swsearch authors"
version = release = swsearch.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 4  # anchors as GitHub makes them, so that links fit both
myst_enable_extensions = ["deflist"]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
add_module_names = False
python_use_unqualified_type_names = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"swsearch {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = str(Path(swsearch.__file__).parent / "service" / "pages" / "static" / "icon.svg")
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_search_summary = False  # a page from the disk may not read others
html_theme_options = {"navigation_with_keys": False}
smartquotes = False  # options begin with two hyphens
highlight_language = "text"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_remove_prompts = True

linkcheck_timeout = 20


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: TextElement) -> reference | None:
    """Resolve a class that a signature or a docstring names by the module that defines it, or by its bare name."""
    if node.get("refdomain") != "py":
        return None
    path = PATHS.get(node["reftarget"].rpartition(".")[2])
    if path is None or node["reftarget"].rpartition(".")[0] not in ("", "swsearch", home_of(path).rpartition(".")[0]):
        return None
    found: reference | None = env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", path, node, text
    )
    return found


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", _resolve)
    Sidebar(app)
