"""Runs, traces, evaluations and backtests show themselves in a notebook."""

import re
from html.parser import HTMLParser

import pytest

from hookline import Agent, Case
from hookline.events import ToolCallEvent
from hookline.models import Call, ScriptedModel, Turn
from hookline.observe.replay import BacktestReport, DecisionChange
from hookline.observe.trace import HandlerRecord, Trace, TraceRecord

HOSTILE = "</pre></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x00\ud800"
TAGS = {
    "article", "b", "div", "h1", "h2", "p", "pre", "rect", "span", "style", "svg", "table", "tbody",
    "td", "th", "thead", "tr",
}  # fmt: skip
ATTRIBUTES = {
    "aria-hidden", "class", "height", "preserveaspectratio", "scope", "viewbox", "width", "x", "y",
}  # fmt: skip


class Elements(HTMLParser):
    """The tags and attributes of some HTML, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def tool(city: str) -> str:
    """Tell the weather."""
    return HOSTILE


def hostile_agent() -> Agent:
    calls = [Call("tool", {"city": "Rome"}), Call("tool", {"city": HOSTILE[:-2]})]
    turns = [
        Turn(tool_calls=calls, usage={"input_tokens": 1200, "output_tokens": 30, "cost": 0.5}),
        Turn(HOSTILE),
    ]
    agent = Agent(ScriptedModel(turns, repeat=True, name=HOSTILE), tools=[tool])

    @agent.on.tool_call
    def guard(event: ToolCallEvent):
        return event.deny(HOSTILE) if event.input["city"] != "Rome" else None

    return agent


def backtest_report() -> BacktestReport:
    side = {"decision": HOSTILE, "by": [HOSTILE], "reason": HOSTILE, "arguments": HOSTILE}
    report = BacktestReport(calls=1, sessions=1, random=1, notes=[HOSTILE])
    change = DecisionChange("rewritten", HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, side, side)
    report.changed(change)
    report.unsteady(change)
    return report


def trace() -> Trace:
    handler = HandlerRecord(by=HOSTILE, did="denied", reason=HOSTILE)
    fields = {"reason": HOSTILE, "error": HOSTILE, "handlers": [handler], "time": 5.0, "duration": 1.0}
    return Trace([TraceRecord("1", name=HOSTILE, decision="deny", **fields)], dropped=3, damaged=1)


async def shown() -> dict[str, object]:
    agent = hostile_agent()
    report = await agent.evaluate([Case("?", HOSTILE + "x", name=HOSTILE)])
    other = await agent.evaluate([Case("?", HOSTILE, name=HOSTILE)])
    run = report.runs[0].result
    return {
        "run": run, "report": report, "comparison": other.compare(report),
        "backtest": backtest_report(), "trace": trace(),
    }  # fmt: skip


async def test_hostile_text_stays_text_in_everything_that_shows_itself():
    for name, value in (await shown()).items():
        found = Elements(value._repr_html_())
        assert found.tags <= TAGS, name
        assert found.attributes <= ATTRIBUTES, name
        assert found.open == [], name
        assert "<img src=x onerror=alert(1)>" in found.text, name


async def test_a_run_shows_its_timeline_its_decisions_and_its_cost():
    result = await hostile_agent().run("hi")
    page = result._repr_html_()
    assert "2 model calls · 2 tool calls · 1 denied" in page
    assert "1,230 tokens · $0.5000" in page
    assert page.count("<svg") == 4
    assert re.search(r'<b class="deny">deny</b></td><td>tool</td><td>[^<]*guard</td>', page)
    kinds = [(step.kind, step.state) for step in result.timeline]
    assert sorted(kinds) == [
        ("model", "ok"),
        ("model", "ok"),
        ("tool", "denied"),
        ("tool", "ok"),
    ]
    assert all(0 <= step.seconds <= result.seconds + 0.001 for step in result.timeline)


async def test_a_notebook_is_light_or_dark_by_its_own_theme():
    page = (await hostile_agent().run("hi"))._repr_html_()
    assert 'body[data-jp-theme-light="false"] .hookline-report' in page
    assert "prefers-color-scheme: dark" in page


CELLS = """
from hookline import Agent, Case
from hookline.models import Call, ScriptedModel, Turn

def weather(city: str) -> str:
    "Tell the weather."
    return f"sunny in {city}"

call = Call("weather", {"city": "Rome"})
model = ScriptedModel([Turn(tool_calls=[call]), Turn("Sunny.")], repeat=True)
agent = Agent(model, tools=[weather])
agent.run_sync("What is the weather in Rome?")
###
await agent.run("What is the weather in Rome?")
###
agent.evaluate_sync([Case("Weather?", "Sunny.")], runs=2)
""".split("###")


@pytest.mark.slow
def test_results_show_themselves_in_a_real_kernel(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    pages = [cell.outputs[0].data["text/html"] for cell in notebook.cells]
    assert ["Timeline" in page for page in pages] == [True, True, False]
    assert "2 of 2 runs of 1 case passed" in pages[2]
    assert all(cell.outputs[0].data["text/plain"] for cell in notebook.cells)
