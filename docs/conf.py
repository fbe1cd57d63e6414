"""Configuration of Sphinx: `make docs` writes the site to build/site, which opens from disk."""

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
# The figures compile many small programs, which run no faster when XLA optimises them.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

logging.getLogger("jax").setLevel(logging.WARNING)  # else it logs every device

import cfgd  # noqa: E402
from cfgd.apps.page.drawing import DARK, LIGHT  # noqa: E402

project = "cfgd"
author = "The cfgd developers"
copyright = f"{author}, Apache-2.0"
release = version = cfgd.__version__

extensions = [
    "myst_parser",
    "extensions.mathml",  # formulas without scripts
    "extensions.figures",  # figures, drawn by the scripts in figures/
    "extensions.public",  # the reference, from the docstrings
    "extensions.name_links",  # links from names in the text to the reference
    "extensions.gallery",  # examples/gallery/*.py with their figures and output
    "extensions.explorer",  # the page of `cfgd.apps.explore`
    "extensions.columns",  # printed tables are scrolled, not wrapped
    "extensions.notebooks",  # guides as Jupyter notebooks
    "extensions.link_check",  # every link exists, and nothing is loaded from the network
]
exclude_patterns = ["_static", "extensions", "figures"]
source_suffix = {".md": "markdown"}
nitpicky = True
smartquotes = False  # X'X is a product

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

html_theme = "furo"
html_title = f"cfgd {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a browser fetches no pages from disk
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
SYSTEM = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
html_theme_options = {
    "light_css_variables": {
        **LIGHT,
        "font-stack": SYSTEM,
        "color-brand-primary": LIGHT["blue"],
        "color-brand-content": LIGHT["blue"],
    },
    "dark_css_variables": {
        **DARK,
        "color-brand-primary": DARK["blue"],
        "color-brand-content": DARK["blue"],
    },
}
toc_object_entries_show_parents = "hide"
add_module_names = False
