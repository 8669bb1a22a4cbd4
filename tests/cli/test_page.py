"""Markdown in the chat: it looks as rich would draw it, piece for piece."""

import io
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from hookline.cli.chat.page import page
from hookline.cli.chat.region import Region

from ..tables import each_row

ROOT = Path(__file__).parents[2]

MIXED = """\
# One `code`

Prose with **strong**, *emphasis*, ~~struck~~, [a link](http://example.com/x) and ![a picture](p.png),
long enough to be broken into several lines on every terminal that anybody would talk in.
A hard break\\
and one more.

1. first
2. second, with much to say about itself, so much that it does not fit into the line that it began in
   - an inner item
   - another

     with a paragraph

10. tenth

> a quotation with **strong** words

| a | b |
|---|---|
| 1 | 2 |

```python
def function(value: int) -> int:
\treturn value * 2  # tabs, too

text = '''several
lines'''
```

```no-such-language
as it is
```

    indented

日本語のテキスト 日本語のテキスト 日本語のテキスト, “quotes” — and more of it, naïve and wide.

---

the end\t.
"""
BROKEN = f"""\
{"word " * 7}{"unbreakable" * 30} end

- {"x" * 200}

```python
{"y" * 300} = "{"z " * 99}"
```
"""


class LeftHeading(Heading):
    LEVEL_ALIGN = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        yield Syntax(
            code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 2),
            background_color="default",
        )  # fmt: skip


class Drawn(Markdown):
    """Markdown drawn by rich itself."""

    elements = {
        **Markdown.elements, "heading_open": LeftHeading, "fence": Code, "code_block": Code,
    }  # fmt: skip


def console(width: int) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=width, height=40,
        highlight=False,
    )  # fmt: skip


def cells(part: Any, width: int) -> list[list[tuple[str, object]]]:
    """What is seen: each character with its look, without the spaces at the ends of lines."""
    screen = console(width)
    seen: list[list[tuple[str, object]]] = []
    for line in screen.render_lines(part, screen.options, pad=False):
        row = [(character, look(segment)) for segment in line for character in segment.text]
        while row and row[-1][0] == " ":
            row.pop()
        seen.append([cell if cell[0] != " " else (" ", None) for cell in row])
    return seen


def look(segment: Segment) -> object:
    style = segment.style
    if style is None:
        return None
    colour = style.color.name if style.color and not style.color.is_default else None
    found = colour, *(bool(each) for each in (style.bold, style.italic, style.strike, style.underline))
    return found if any(found) else None


@each_row("width", [24, 79, 120])
@each_row("name", ["mixed", "broken", "docs/tools.md", "docs/policy.md", "README.md"])
def test_a_page_looks_as_rich_draws_it(name, width):
    texts = {"mixed": MIXED, "broken": BROKEN}
    text = texts.get(name) or (ROOT / name).read_text()
    assert cells(page(text), width) == cells(
        Drawn(text, code_theme="ansi_dark", hyperlinks=False), width
    )


def test_no_line_is_wider_than_the_terminal():
    screen = console(30)
    Region(screen).add(page(MIXED + BROKEN))
    lines = screen.file.getvalue().split("\n")  # type: ignore[attr-defined]
    assert max(Text.from_ansi(line).cell_len for line in lines) < 30
