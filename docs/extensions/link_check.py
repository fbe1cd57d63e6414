"""Check the built site: every link and anchor exists, and no page loads from the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from sphinx.errors import ExtensionError

# a reader may follow a link in the text; everything else is fetched when a page is opened
FETCHED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}
IN_STYLES = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")


class Page(HTMLParser):
    """The anchors, links and resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in FETCHED and FETCHED[tag] in given:
            self.resources.append(given[FETCHED[tag]])


def faults(site: Path) -> Iterator[str]:
    """Yield a sentence for each broken link, and for each resource that is on the network."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in [*page.links, *page.resources]:
            target, anchor = urldefrag(link)
            if re.match(r"[a-z]+:|//", target):
                continue
            found = (path.parent / unquote(target.partition("?")[0])).resolve() if target else path
            if not found.exists():
                yield f"{path.relative_to(site)}: {link} does not exist."
            elif anchor and found in pages and unquote(anchor) not in pages[found].anchors:
                yield f"{path.relative_to(site)}: {link} has no such anchor."
        for resource in page.resources:
            if re.match(r"https?:|//", resource):
                yield f"{path.relative_to(site)}: {resource} is loaded from the network."
    for path in sorted(site.rglob("*.css")):
        for found in IN_STYLES.finditer(path.read_text(encoding="utf-8")):
            if re.match(r"https?:|//", found[1] or found[2]):
                yield f"{path.relative_to(site)}: {found[0]} is loaded from the network."


def check(app: Any, error: Exception | None) -> None:
    if error is None:
        found = list(faults(Path(app.outdir)))
        if found:
            raise ExtensionError("The site has faults:\n" + "\n".join(found))


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
