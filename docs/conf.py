"""The documentation site: `make docs`."""

from __future__ import annotations

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
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
fragments = [f"tables/{name}.md" for name in ("coverage", "rates", "rcine")]  # quoted in other pages
exclude_patterns = ["_build", "gallery/README.rst", "gallery/*.py", *fragments]
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
html_theme = "pydata_sphinx_theme"
html_title = "Fliptron"
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
html_show_sourcelink = False
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}
