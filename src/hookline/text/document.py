"""A report as text for a terminal, as an HTML page, and as HTML in a notebook.

    document = ReportDocument("Evaluation", ["3 of 4 runs passed"], [ReportTable("", columns, rows)])
    print(document.text(80))
    Path("report.html").write_text(document.page())

Everything is escaped: the text comes from models, tools and strangers. There is no script, and the
page's content security policy allows only its own style.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from itertools import zip_longest
from typing import Final, Literal, TypeAlias

from .printable import printable

Tone: TypeAlias = Literal["", "allow", "ask", "deny", "dim"]

CUT: Final = 4_000
"""Characters shown of one piece of quoted text."""
NARROWEST: Final = 8
"""Columns that text keeps when a table is fitted into a width."""

_DARK: Final = "--dim: #aaa; --deny: #ff8a80; --ask: #ffca6b; --allow: #7ddc9a;"
_LIGHT: Final = "--dim: #666; --deny: #b3261e; --ask: #8a5a00; --allow: #1a6b34;"
STYLE: Final = f"""
.hookline-report {{ --line: #8885; --soft: #8882; {_LIGHT} font: 14px/1.5 system-ui, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .hookline-report {{ {_DARK} }} }}
body[data-jp-theme-light="true"] .hookline-report, body.vscode-light .hookline-report,
html[data-theme="light"] .hookline-report {{ {_LIGHT} }}
body[data-jp-theme-light="false"] .hookline-report, body.vscode-dark .hookline-report,
html[data-theme="dark"] .hookline-report, html[theme="dark"] .hookline-report {{ {_DARK} }}
html.hookline-page {{ color-scheme: light dark; }}
html.hookline-page body {{ margin: 0 auto; padding: 1rem; max-width: 64rem; }}
.hookline-report h1 {{ font-size: 1.25rem; margin: .3rem 0; }}
.hookline-report h2 {{ font-size: 1.05rem; margin: 1.1rem 0 .3rem; }}
.hookline-report p {{ margin: .3rem 0; }}
.hookline-report .scroll {{ overflow-x: auto; }}
.hookline-report table {{ font: inherit; border-collapse: collapse; width: 100%; margin: 0; }}
.hookline-report th, .hookline-report td {{ text-align: left; padding: .25rem .6rem;
  border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }}
.hookline-report .number {{ text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }}
.hookline-report article {{ border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0;
  padding: .4rem .8rem; }}
.hookline-report pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0;
  padding: .4rem .6rem; background: var(--soft); color: inherit;
  font: 13px/1.5 ui-monospace, monospace; }}
.hookline-report svg {{ display: block; width: 100%; min-width: 8rem; height: 1.2em; }}
.hookline-report .track {{ fill: var(--soft); }}
.hookline-report .bar {{ fill: currentColor; }}
.hookline-report .allow {{ color: var(--allow); }} .hookline-report .ask {{ color: var(--ask); }}
.hookline-report .deny {{ color: var(--deny); }} .hookline-report .dim {{ color: var(--dim); }}
.hookline-report b {{ font-weight: 600; }}
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text with a tone."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class BarCell:
    """A stretch of a timeline, as parts of its whole."""

    start: float
    length: float
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows under headings; columns named in `numbers` are aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell | BarCell]]
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Article:
    """One thing in detail: a heading and labelled lines; text that is quoted has no label."""

    heading: str
    note: str = ""
    lines: Sequence[tuple[str, str | Cell]] = ()


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """A report: what it comes to, then tables and details."""

    title: str
    summary: Sequence[str] = ()
    parts: Sequence[ReportTable | Article | str] = ()
    """A string is a heading."""
    notes: Sequence[str] = field(default=())

    def text(self, width: int = 80) -> str:
        """The report for a terminal, without its title and notes."""
        lines = [*self.summary]
        for part in self.parts:
            if isinstance(part, str):
                lines += ["", part]
            elif isinstance(part, ReportTable):
                lines += ["", *([part.title] if part.title else ()), *_text_table(part, width)]
            else:
                lines += _text_article(part)
        return "\n".join(lines).lstrip("\n")

    def fragment(self) -> str:
        """The report as HTML for a notebook, with its style."""
        return _whole(f'<div class="hookline-report"><style>{STYLE}</style>{self._body()}</div>')

    def page(self) -> str:
        """The report as a page that needs nothing else."""
        digest = b64encode(sha256(STYLE.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        return _whole(
            f"""<!doctype html>
<html lang=en class=hookline-page>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<meta http-equiv=Content-Security-Policy content="{escape(policy)}">
<title>{escape(self.title)}</title>
<style>{STYLE}</style>
<main class=hookline-report>
{self._body()}
</main>
</html>
"""
        )

    def _body(self) -> str:
        lines = [f"<h1>{escape(self.title)}</h1>"]
        lines += [f"<p>{escape(line)}</p>" for line in self.summary]
        lines += [f"<p class=dim>{escape(note)}</p>" for note in self.notes]
        for part in self.parts:
            if isinstance(part, str):
                lines.append(f"<h2>{escape(part)}</h2>")
            else:
                lines.append(_table(part) if isinstance(part, ReportTable) else _article(part))
        return "\n".join(lines)


def counted(number: int, one: str) -> str:
    """A number of things: `1 case`, `1,200 cases`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def cut(text: str, most: int = CUT) -> str:
    """Text up to a length; the end says how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def one_line(text: str, most: int) -> str:
    """Text in one line of at most so many characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


# --- for a terminal -------------------------------------------------------------------------------


def _text_table(table: ReportTable, width: int) -> Iterator[str]:
    shown = [n for n, _ in enumerate(table.columns) if not _has_bars(table, n)]
    heads = [table.columns[n] for n in shown]
    rows = [[" ".join(printable(_plain(row[n])).split()) for n in shown] for row in table.rows]
    columns = zip_longest(heads, *rows, fillvalue="")
    widths = [min(width, max(map(len, column))) for column in columns]
    is_number = [head in table.numbers for head in heads]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        room = [n for n, number in enumerate(is_number) if not number and widths[n] > NARROWEST]
        if not room:
            break
        widths[max(room, key=widths.__getitem__)] -= 1
    for row in [heads, *rows]:
        cells = [
            one_line(cell, wide).rjust(wide) if number else one_line(cell, wide).ljust(wide)
            for cell, wide, number in zip(row, widths, is_number, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _has_bars(table: ReportTable, number: int) -> bool:
    return any(isinstance(row[number], BarCell) for row in table.rows)


def _text_article(article: Article) -> Iterator[str]:
    yield one_line(article.heading, 400)
    if article.note:
        yield f"  {one_line(article.note, 400)}"
    width = max((len(label) for label, _ in article.lines), default=0)
    for label, text in article.lines:
        start = f"  {label:<{width}}  " if width else "  "
        yield f"{start}{one_line(_plain(text), 400)}".rstrip()


def _plain(cell: str | Cell | BarCell) -> str:
    return cell if isinstance(cell, str) else cell.text if isinstance(cell, Cell) else ""


# --- HTML -----------------------------------------------------------------------------------------


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # half a surrogate pair has no UTF-8


def _table(table: ReportTable) -> str:
    kinds = [" class=number" if name in table.numbers else "" for name in table.columns]
    heads = zip(table.columns, kinds, strict=True)
    head = "".join(f"<th scope=col{kind}>{escape(name)}</th>" for name, kind in heads)
    rows = "\n".join(
        "<tr>" + "".join(f"<td{k}>{_cell(c)}</td>" for c, k in zip(row, kinds, strict=True)) + "</tr>"
        for row in table.rows
    )
    title = f"<h2>{escape(table.title)}</h2>" if table.title else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f"{title}<div class=scroll><table>{body}</table></div>"


def _cell(cell: str | Cell | BarCell) -> str:
    if isinstance(cell, BarCell):
        start, length = cell.start * 100, max(cell.length * 100, 0.5)
        return (
            f'<svg viewBox="0 0 100 10" preserveAspectRatio=none class="{cell.tone}" aria-hidden=true>'
            f'<rect class=track x="0" y="0" width="100" height="10"/>'
            f'<rect class=bar x="{min(start, 99.5):.2f}" y="2" width="{length:.2f}" height="6"/></svg>'
        )
    if isinstance(cell, str):
        return escape(cut(cell))
    return (
        f'<b class="{cell.tone}">{escape(cut(cell.text))}</b>' if cell.tone else escape(cut(cell.text))
    )


def _article(article: Article) -> str:
    note = f" <span class=dim>{escape(article.note)}</span>" if article.note else ""
    lines = [f"<p><b>{escape(cut(article.heading))}</b>{note}</p>"]
    for label, text in article.lines:
        if label:
            lines.append(f"<p>{escape(label)} {_cell(text)}</p>")
        else:
            lines.append(f"<pre>{escape(cut(_plain(text)))}</pre>")
    return f"<article>{''.join(lines)}</article>"
