"""A backtest as one self-contained HTML page.

Text from the tape stays text: it is escaped, and the page's content security policy allows only its
own style.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any, Final

from .report import BacktestReport, DecisionChange

STYLE: Final = """
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --dim: #666; --deny: #b3261e;
  --ask: #8a5a00; --allow: #1a6b34; }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa; --deny: #ff8a80; --ask: #ffca6b;
  --allow: #7ddc9a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 1.6rem; }
p.note, .dim { color: var(--dim); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
article { border: 1px solid var(--line); border-radius: .4rem; margin: .7rem 0; padding: .5rem .8rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; padding: .4rem .6rem;
  background: var(--soft); font: 13px/1.5 ui-monospace, monospace; }
.allow { color: var(--allow); } .ask { color: var(--ask); } .deny { color: var(--deny); }
.word { font-weight: 600; }
"""


def html_page(report: BacktestReport, title: str = "Backtest") -> str:
    """The report as a page."""
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    changed = sum(report.changes.values())
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in report.notes)
    page = f"""<!doctype html>
<html lang=en>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<meta http-equiv=Content-Security-Policy content="{escape(policy)}">
<title>{escape(title)}</title>
<style>{STYLE}</style>
<main>
<h1>{escape(title)}</h1>
<p><strong>{changed:,}</strong> of {counted(report.calls, "recorded call")} in
{counted(report.sessions, "session")} would be decided differently.</p>
<p class=dim>Half of the calls were judged within {report.percentile(0.5):.0f} µs, 95 % within
{report.percentile(0.95):.0f} µs.</p>
{notes}
{_table(report)}
{_examples("Examples", report.examples)}
{_examples(f"Not deterministic: {report.random:,}", report.random_examples)}
</main>
</html>
"""
    return page.encode("utf-8", "replace").decode()  # half a surrogate pair has no UTF-8


def counted(number: int, one: str) -> str:
    """How many there are of something."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _table(report: BacktestReport) -> str:
    if not report.changes:
        return "<p>No decision changes.</p>"
    rows = "\n".join(
        f"<tr><td>{escape(kind)}<td>{escape(tool)}<td>{escape(party)}<td class=number>{number:,}"
        for (kind, tool, party), number in report.changes.most_common()
    )
    head = "<tr><th scope=col>change<th scope=col>tool<th scope=col>by<th scope=col class=number>calls"
    return f"<h2>Changes</h2><div class=scroll><table><thead>{head}<tbody>{rows}</table></div>"


def _examples(title: str, changes: list[DecisionChange]) -> str:
    if not changes:
        return ""
    return f"<h2>{escape(title)}</h2>" + "\n".join(map(_example, changes))


def _example(change: DecisionChange) -> str:
    asked = change.requested if isinstance(change.requested, str) else _json(change.requested)
    return (
        f"<article><p><strong>{escape(change.tool)}</strong> "
        f"<span class=dim>{escape(change.session_id)} · {escape(change.call)}</span></p>"
        f"<pre>{escape(asked)}</pre>{_side('then', change.before)}{_side('now', change.after)}"
        "</article>"
    )


def _side(when: str, side: dict[str, Any]) -> str:
    word = str(side["decision"])
    by = f" by {escape(', '.join(side['by']))}" if side["by"] else ""
    why = f": {escape(str(side['reason']))}" if side["reason"] else ""
    given = side["arguments"]
    ran = f"<pre>{escape(_json(given))}</pre>" if given is not None else ""
    with_ = ", with" if ran else ""
    return f"<p>{when} <span class='word {escape(word)}'>{escape(word)}</span>{by}{why}{with_}</p>{ran}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
