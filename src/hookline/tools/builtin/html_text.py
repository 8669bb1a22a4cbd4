"""HTML as readable text: headings, paragraphs, lists, links and code, without the rest."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_SKIPPED = {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre",
    "section", "summary", "table", "title", "ul",
}  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE = re.compile(r"\s+")


def html_text(page: str, address: str = "") -> str:
    """The text of a page; links are given in full, from the page's own address."""
    parser = _Text(address)
    parser.feed(page)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.out)).strip()


class _Text(HTMLParser):
    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._address = address
        self._skipping = ""
        self._depth = 0
        self._pre = 0
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping:
            self._depth += tag == self._skipping
        elif tag in _SKIPPED:
            self._skipping, self._depth = tag, 1
        elif tag in _HEADINGS:
            self._break(f"\n\n{_HEADINGS[tag]}")
        elif tag == "li":
            self._break("\n- ")
        elif tag in {"br", "tr"}:
            self._break("\n")
        elif tag in {"td", "th"}:
            self._break("" if self._at_line_start() else " | ")
        elif tag in _BLOCKS:
            self._break("\n\n")
            self._pre += tag == "pre"
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""
        elif tag == "img" and (alt := dict(attrs).get("alt")):
            self.handle_data(f"[{alt}]")

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            self._depth -= tag == self._skipping
            if not self._depth:
                self._skipping = ""
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._pre = max(0, self._pre - (tag == "pre"))
            self._break("\n\n")
        elif tag == "a":
            self._end_link()

    def handle_data(self, data: str) -> None:
        if self._skipping:
            return
        if not self._pre:
            data = _SPACE.sub(" ", data)
            if self._at_line_start() or self.out[-1].endswith(" "):
                data = data.lstrip(" ")
        if data:
            self.out.append(data)

    def _end_link(self) -> None:
        link, self._link = self._link, ""
        if link and not link.startswith(("#", "javascript:", "data:")):
            try:
                self.out.append(f" ({urljoin(self._address, link)})")
            except ValueError:
                pass  # no address at all

    def _break(self, text: str) -> None:
        if self.out and not self._pre:
            self.out[-1] = self.out[-1].rstrip(" ")
        self.out.append(text)

    def _at_line_start(self) -> bool:
        return not self.out or self.out[-1].endswith("\n") or not self.out[-1]
