"""HTML as readable text: headings, paragraphs, lists, links and code, without the rest.

A page is read as a row of tags and texts, in one pass. There is no tree: building one as HTML 5
prescribes takes quadratic time on deep nesting, whatever the library, and text needs none.
"""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin

_SKIPPED = {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "select"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre",
    "section", "summary", "table", "title", "ul",
}  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_RAW = {"script", "style", "iframe", "textarea", "xmp", "noembed", "noframes"}
"""What these hold is no markup."""
_LONGEST_ADDRESS = 2000
"""Characters of an address that is put before every relative link of its page."""
_SPACE = re.compile(r"\s+")
# Possessive, so that a tag that is not closed is given up at once and not tried again shorter.
_VALUE = r"(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+)"
_TAG = re.compile(
    rf"<(/?)([A-Za-z][^\s/>]*+)((?:[\s/]++|[^\s/>=]++(?:\s*+=\s*+{_VALUE})?|=)*+)>", re.DOTALL
)
_DATA = re.compile(r"(?:[^<]++|<(?![A-Za-z/!?]))++")
"""Text, with each `<` that begins no markup."""
_ATTRIBUTE = re.compile(rf"([^\s/>=]++)(?:\s*+=\s*+({_VALUE}))?", re.DOTALL)


def html_text(page: str, address: str = "") -> str:
    """The text of a page; links are given in full, from the page's own address."""
    text = _Text(address)
    text.read(page)
    return re.sub(r"\n{3,}", "\n\n", "".join(text.out)).strip()


class _Text:
    def __init__(self, address: str) -> None:
        self.out: list[str] = []
        self._address = address if len(address) <= _LONGEST_ADDRESS else ""
        self._skipping = ""
        self._depth = 0
        self._pre = 0
        self._link = ""

    def read(self, page: str) -> None:
        """Take in a page, from one piece of markup to the next."""
        at = 0
        while at < len(page):
            if data := _DATA.match(page, at):
                at = data.end()
                self.handle_data(_unescaped(data[0]))
            else:
                at = self._markup(page, at)

    def _markup(self, page: str, at: int) -> int:
        """Consume a construct that starts with `<`; return the position after it."""
        after = page[at + 1]
        if page.startswith("<!--", at):
            return _after(page, "-->", at + 2)
        if after in "!?" or (after == "/" and not page[at + 2 : at + 3].isalpha()):
            return _after(page, ">", at + 1)
        found = _TAG.match(page, at)
        if found is None:  # a tag without an end takes the rest of the page with it
            return len(page)
        name = found[2].lower()
        if found[1]:
            self.handle_endtag(name)
            return found.end()
        self.handle_starttag(name, found[3])
        return found.end() if name not in _RAW else self._raw(page, name, found.end())

    def _raw(self, page: str, name: str, at: int) -> int:
        end = re.compile(f"</{name}", re.IGNORECASE).search(page, at)
        stop = end.start() if end else len(page)
        self.handle_data(_unescaped(page[at:stop]))
        return stop

    def handle_starttag(self, tag: str, attributes: str) -> None:
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
            self._link = _attribute(attributes, "href")
        elif tag == "img" and (alt := _attribute(attributes, "alt")):
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


def _after(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def _attribute(text: str, name: str) -> str:
    """The value of an attribute in the text of a tag; the first one counts."""
    for found in _ATTRIBUTE.finditer(text):
        if found[1].lower() == name:
            value = found[2] or ""
            return _unescaped(value[1:-1] if value[:1] in ("'", '"') else value)
    return ""


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return unescape(text)
    except ValueError:  # a number with thousands of digits
        return text
