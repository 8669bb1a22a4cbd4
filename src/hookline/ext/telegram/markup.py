"""Convert an agent's Markdown to Telegram messages.

Telegram counts in UTF-16 code units and refuses a message with an unclosed tag. So the text is split
first, at paragraphs if possible, and each piece is converted to HTML separately.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LIMIT: Final = 4096
"""The length limit of one message."""
MOST_MARKS: Final = 400
"""Characters of markup and ends of lines, outside code blocks, in a text that is parsed."""

_FENCE = re.compile(r"^ {0,3}(`{3,20}|~{3,20})(?![`~])\s*([\w+#.-]{0,30})(.*)$")
_MARK = re.compile(r"[\[\]*_~`!<&\\|>\n]")
_LINKS = ("http://", "https://", "tg://", "mailto:")
_TAGS = {"strong": "b", "em": "i", "s": "s"}


def length(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def pieces(text: str, limit: int = LIMIT) -> list[str]:
    """Split Markdown into pieces of bounded length; a code block that is split continues as a code
    block.

    A full piece does not depend on the text that follows it, so a text can be shown while it grows.
    """
    found: list[str] = []
    rest = text.strip("\n")
    while len(rest) > limit or length(rest) > limit:
        head = _head(rest, limit)
        if fence := _open_fence(head):
            head = _head(rest, limit - len(fence[0]) - 1)  # what closes it must fit, too
            fence = _open_fence(head)
        rest = rest[len(head) :].lstrip("\n")
        head = head.rstrip()
        if fence is not None:
            mark, language = fence
            head = f"{head}\n{mark}"
            first, _, after = rest.partition("\n")
            rest = after if first.strip() == mark else f"{mark}{language}\n{rest}"
        if head:
            found.append(head)
    if rest.strip():
        found.append(rest)
    return found


def _head(text: str, limit: int) -> str:
    window = _window(text, limit)
    return window[: _cut(window)]


def _window(text: str, limit: int) -> str:
    """The longest beginning that fits; no character is cut in two."""
    window = text[:limit]
    while length(window) > limit:
        window = window[: len(window) - max(1, (length(window) - limit) // 2)]
    return window


def _cut(window: str) -> int:
    """Where to cut: after a paragraph, a line, a sentence or a word, but not too early."""
    least = len(window) // 3
    for mark, after in (("\n\n", 2), ("\n", 1), (". ", 2), (" ", 1)):
        at = window.rfind(mark)
        if at >= least:
            return at + after
    return len(window)


def _lines(text: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Each line, with the mark and the language of the code block that is open after it."""
    found: tuple[str, str] | None = None
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if fence is not None and found is None:
            found = fence[1], fence[2]
        elif fence is not None and found is not None and _closes(fence, found[0]):
            found = None
        yield line, found


def _closes(fence: re.Match[str], mark: str) -> bool:
    return fence[1].startswith(mark) and not (fence[2] or fence[3].strip())


def _open_fence(text: str) -> tuple[str, str] | None:
    """The mark and the language of a code block that the text does not close."""
    return next((fence for _, fence in deque(_lines(text), maxlen=1)), None)


def _is_dense(text: str) -> bool:
    """Whether a text has too much markup outside code blocks to be worth parsing."""
    if len(_MARK.findall(text)) <= MOST_MARKS:
        return False
    outside = "\n".join(line for line, fence in _lines(text) if fence is None)
    return len(_MARK.findall(outside)) > MOST_MARKS


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


def as_html(text: str) -> str:
    """A Markdown text as Telegram's HTML; whatever it says, tags are balanced and text is escaped.

    A text that is mostly markup stays as it is: parsing it could take a second per message.
    """
    if _is_dense(text):
        return escape(text, quote=False).strip("\n")
    return _Writer().write(_parser().parse(text)).strip("\n")


def seen(html: str) -> str:
    """The visible text of Telegram HTML."""
    return unescape(re.sub(r"<[^>]+>", "", html))


class _Writer:
    """Walks the tokens of a text."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._lists: list[int | None] = []
        """The next number of each open list; None for a bulleted list."""
        self._bullet = ""
        self._quotes = 0
        self._cells = 0
        self._hidden: list[bool] = []
        """Of each open link, whether it leads nowhere that Telegram knows."""

    def write(self, tokens: list[Token]) -> str:
        for token in tokens:
            self._block(token)
        return "".join(self._out)

    def _block(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._begin("<b>")
            case "heading_close":
                self._put("</b>")
            case "paragraph_open":
                self._begin("")
            case "inline":
                for child in token.children or ():
                    self._inline(child)
            case "fence" | "code_block":
                self._begin(_code_block(token))
            case "hr":
                self._begin("———")
            case "blockquote_open":
                if not self._quotes:  # Telegram has no quote within a quote
                    self._begin("<blockquote>")
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
                if not self._quotes:
                    self._put("</blockquote>")
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                number = self._lists[-1]
                self._bullet = "• " if number is None else f"{number}. "
                if number is not None:
                    self._lists[-1] = number + 1
            case "tr_open":
                self._begin("", tight=True)
                self._cells = 0
            case "th_open" | "td_open":
                self._put(" | " if self._cells else "")
                self._cells += 1
            case _:
                pass

    def _inline(self, token: Token) -> None:
        kind, _, edge = token.type.rpartition("_")
        match token.type:
            case "text":
                self._put(escape(token.content, quote=False))
            case "code_inline":
                self._put(f"<code>{escape(token.content, quote=False)}</code>")
            case "softbreak" | "hardbreak":
                self._put("\n")
            case "link_open":
                address = str(token.attrGet("href") or "")
                self._hidden.append(not address.startswith(_LINKS))
                if not self._hidden[-1]:
                    self._put(f'<a href="{escape(address)}">')
            case "link_close":
                if not self._hidden.pop():
                    self._put("</a>")
            case "image":
                self._put(escape(token.content or "picture", quote=False))
            case _ if kind in _TAGS:
                self._put(f"<{'/' if edge == 'close' else ''}{_TAGS[kind]}>")
            case _:
                self._put(escape(token.content, quote=False))

    def _begin(self, opening: str, *, tight: bool = False) -> None:
        """Begin a block, away from the one before it."""
        if self._out and self._out[-1] != "<blockquote>":
            self._put("\n" if tight or self._lists else "\n\n")
        if self._lists:
            indent = "  " * (len(self._lists) - 1)
            self._put(indent + (self._bullet or "  "))
            self._bullet = ""
        self._put(opening)

    def _put(self, text: str) -> None:
        if text:
            self._out.append(text)


def _code_block(token: Token) -> str:
    code = escape(token.content.rstrip("\n"), quote=False)
    language = re.match(r"[\w+#.-]+", token.info.strip())
    if language is None:
        return f"<pre>{code}</pre>"
    return f'<pre><code class="language-{language[0]}">{code}</code></pre>'
