"""The documentation site: `make docs`."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import fliptron

project = "Fliptron"
author = "the Fliptron developers"
version = release = fliptron.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
default_role = "py:obj"  # `name` in a docstring is code, and a link where there is something to link to
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
fragments = [f"tables/{name}.md" for name in ("coverage", "rates", "rcine")]  # quoted in other pages
exclude_patterns = ["_build", "gallery/README.rst", "gallery/*.py", *fragments]
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "exclude-members": "arrange,arrays,by_feature,edges,memory,room,settle,tables",  # of use to other code only
}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_type_aliases = {"Array": "numpy.ndarray"}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
smartquotes_action = "D"  # dashes only: "full" is a value, not a word
html_theme = "pydata_sphinx_theme"
html_title = "Fliptron"
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navigation_depth": 3,
    "show_nav_level": 2,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def _block(writer: Any, node: Any) -> None:
    tex = node.astext().strip()
    if r"\\" in tex:  # several lines, aligned at the &
        tex = rf"\begin{{aligned}} {tex} \end{{aligned}}"
    writer.body.append(f'<div class="formula">{tex2mathml(tex, as_block=True)}</div>')
    raise SkipNode


_held: dict[str, list[str]] = {}


def _hold(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep the docstring of an attribute from napoleon, which takes "what it is: more of it" for a type."""
    if what in ("attribute", "property"):
        _held[name] = lines[:]
        lines.clear()


def _release(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = _held.pop(name, lines)


def setup(app: Any) -> None:
    """Formulas become MathML, which a browser draws by itself: the site needs no network."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("autodoc-process-docstring", _hold, priority=100)
    app.connect("autodoc-process-docstring", _release, priority=900)
