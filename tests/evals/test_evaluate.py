"""`agent.evaluate`: cases, pass rates, thresholds and comparisons."""

import asyncio
import json
from dataclasses import dataclass
from xml.etree import ElementTree

import pytest

from hookline import Agent, Case, HooklineError
from hookline.errors import EvalError, UnknownModel
from hookline.events import ToolCallEvent
from hookline.models import Call, ScriptedModel, Turn
from hookline.runtime.evals.report import EvalRun, PassRate, read_report

from ..tables import each_row


@dataclass
class Invoice:
    number: str
    total: float


async def late() -> bool:
    return True


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def says(*turns) -> ScriptedModel:
    return ScriptedModel([Turn(t) if isinstance(t, str) else t for t in turns], repeat=True)


def calling(**arguments) -> ScriptedModel:
    return says(Turn(tool_calls=[Call("weather", arguments)]), "It is sunny.")


async def reasons(agent: Agent, case: Case) -> list[str]:
    return (await agent.evaluate([case]))[case.name].reasons


# --- what a case expects ----------------------------------------------------------------------------


@each_row(
    ("expects", "reason"),
    [
        ({"expected": " Paris.\n"}, ""),
        ({"expected": "Rome."}, "expected 'Rome.', got 'Paris.'"),
        ({"contains": "PARIS"}, ""),
        ({"contains": ["par", "rome"]}, "'rome' is not in the answer 'Paris.'"),
        ({"called": "weather"}, "weather was not called, or failed; no tool ran"),
        ({"denied": "weather"}, "no call of weather was denied"),
        ({"check": lambda result: True}, ""),
        ({"check": lambda result: None}, ""),
        ({"check": lambda result: "too short"}, "too short"),
        (
            {"check": lambda result: result.text == "x"},
            "<lambda> returned False for the answer 'Paris.'",
        ),
        (
            {"check": lambda result: 1 / 0},
            "the checker <lambda> raised ZeroDivisionError: division by zero",
        ),
        ({"check": lambda result: 0.7}, "the checker <lambda> returned 0.7; return True or None if"),
        ({"contains": "Paris", "check": lambda result: "no"}, "no"),
    ],
)
async def test_a_run_passes_if_everything_that_the_case_expects_holds(expects, reason):
    found = await reasons(Agent(says("Paris."), tools=[weather]), Case("Capital of France?", **expects))
    assert [each.startswith(reason) for each in found] == ([True] if reason else [])


async def test_a_checker_may_be_async_and_use_assert():
    async def is_long(result):
        await asyncio.sleep(0)
        assert len(result.text) > 100, "the answer is short"

    [reason] = await reasons(Agent(says("Paris.")), Case("?", check=is_long))
    assert reason.startswith("is_long: the answer is short")


async def test_tools_that_ran_and_calls_that_were_denied_are_told_apart():
    agent = Agent(calling(city="Rome"), tools=[weather])
    assert await reasons(agent, Case("?", called="weather")) == []

    @agent.on.tool_call
    def no(event: ToolCallEvent):
        return event.deny("closed")

    report = await agent.evaluate([Case("?", called="weather"), Case("!", denied=["weather"])])
    assert report["?"].reasons == ["weather was not called, or failed; no tool ran"]
    assert report["!"].reasons == []
    [denial] = report["!"].denials
    assert denial.endswith("no denied weather: closed")


async def test_a_typed_answer_is_compared_as_a_value_and_expected_may_be_plain_data():
    agent = Agent(says('{"number": "17", "total": 12.5}'), output=Invoice)
    cases = [
        Case("a", Invoice("17", 12.5)),
        Case("b", {"number": "17", "total": 12.5}),
        Case("c", Invoice("17", 1), name="other"),
    ]
    report = await agent.evaluate(cases)
    assert [case.rate.passed for case in report.cases] == [1, 1, 0]
    assert "Invoice(number='17', total=1" in report["other"].reasons[0]


# --- running ----------------------------------------------------------------------------------------


async def test_every_run_is_a_conversation_of_its_own_and_only_so_many_go_on_at_once():
    going, most = 0, 0

    async def busy(city: str) -> str:
        """Be busy."""
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(0.01)
        going -= 1
        return "ok"

    model = ScriptedModel(
        [Turn(tool_calls=[Call("busy", {"city": "x"})]), Turn("ok")], repeat=True, record=True
    )
    agent = Agent(model, tools=[busy])
    report = await agent.evaluate([Case(str(n), "ok") for n in range(4)], runs=3, concurrency=3)
    sessions = {run.result.session for run in report.runs}
    assert (report.rate.passed, len(sessions), most) == (12, 12, 3)


async def test_cost_and_time_are_counted_and_an_unknown_price_is_none():
    agent = Agent(says(Turn("ok", usage={"input_tokens": 3, "cost": 0.25})))
    report = await agent.evaluate([Case("a", "ok"), Case("b", "ok")], runs=2)
    assert report.cost == 1.0
    assert "$1.0000" in str(report)
    assert report.data()["cases"][0]["mean_cost"] == 0.25
    assert report.data()["mean_seconds"] > 0
    assert (await Agent(says("ok")).evaluate([Case("a", "ok")])).cost is None


async def test_a_run_that_ends_with_an_error_has_failed_and_the_rest_goes_on():
    model = ScriptedModel([Turn("ok", match="good")])  # it has no turn for the other case
    agent = Agent(model)
    report = await agent.evaluate([Case("good", "ok"), Case("bad", "ok")])
    assert [case.rate.passed for case in report.cases] == [1, 0]
    assert report["bad"].runs[0].is_error
    assert "1 error" in str(report)


async def test_a_blocked_prompt_is_a_failed_run():
    agent = Agent(says("ok"))

    @agent.on.message_receive
    def closed(event):
        return event.deny("closed on Sundays")

    report = await agent.evaluate([Case("hi", "ok")])
    assert "closed on Sundays" in report["hi"].reasons[0]


async def test_an_error_that_every_run_would_meet_is_raised_once():
    with pytest.raises(UnknownModel, match="unknown model"):
        await Agent("opanai:gpt-5").evaluate([Case("a", "b"), Case("c", "d")], runs=3)


def test_an_evaluation_runs_from_synchronous_code():
    assert Agent(says("ok")).evaluate_sync([Case("a", "ok")]).ok


# --- the report -------------------------------------------------------------------------------------


@each_row(
    ("passed", "runs", "low", "high"),
    [(0, 1, 0, 0.7935), (5, 5, 0.5655, 1), (8, 10, 0.4902, 0.9433), (50, 100, 0.4038, 0.5962)],
)
def test_the_interval_is_wilsons(passed, runs, low, high):
    found = PassRate([EvalRun("")] * passed + [EvalRun("no")] * (runs - passed)).interval
    assert found == pytest.approx((low, high), abs=1e-4)


async def test_thresholds_are_of_all_runs_and_of_single_cases():
    model = ScriptedModel([Turn("ok", match="good"), Turn("no", match="bad")], repeat=True)
    cases = [Case("good", "ok"), Case("bad", "ok")]
    agent = Agent(model)
    assert not (await agent.evaluate(cases)).ok
    assert (await agent.evaluate(cases, at_least=0.5)).ok
    strict = [cases[0], Case("bad", "ok", at_least=0.1)]
    report = await agent.evaluate(strict, at_least=0.5)
    assert report.missed == ["bad: 0 % passed, 10 % needed"]


@pytest.mark.parametrize("at_least", [0.5, 1.0])
async def test_junit_fails_exactly_the_cases_that_make_the_evaluation_fail(at_least):
    hostile = "bad \x00\x1b[31m\ufffe <&\"' \ud800"
    model = ScriptedModel([Turn("ok", match="good"), Turn(hostile, match="bad")], repeat=True)
    cases = [Case("good", "ok"), Case("bad", "ok", name=f"name {hostile}")]
    report = await Agent(model).evaluate(cases, at_least=at_least)
    suite = ElementTree.fromstring(report.junit().encode())[0]
    failing = [case.get("name") for case in suite if len(case)]
    assert len(failing) == int(suite.get("failures")) == (0 if report.ok else 1)
    assert suite.get("tests") == "2"


async def test_a_table_fits_80_columns_whatever_the_cases_are_called():
    model = says(Turn("x " * 200, usage={"cost": 12345.6789}))
    cases = [Case("long " * 40, "y"), Case("name\x1b[2J\nof two lines", "z")]
    text = str(await Agent(model).evaluate(cases, runs=2))
    table = text.partition("Cases")[2].partition("Failures")[0].splitlines()
    assert max(map(len, table)) <= 80
    assert "\x1b" not in text


async def test_a_report_is_read_back_from_its_json():
    report = await Agent(calling(city="Rome"), tools=[weather]).evaluate([Case("?", "no")], runs=2)
    again = read_report(json.loads(json.dumps(report.data())), "file")
    assert again.data() == report.data()
    with pytest.raises(EvalError, match="file is not a report"):
        read_report({"cases": [{"name": "x"}]}, "file")


async def test_a_comparison_names_the_cases_that_changed_worst_first():
    model = ScriptedModel([Turn("ok", match="[ab]"), Turn("no", match="c"), Turn("ok")], repeat=True)
    cases = [Case(name, "ok") for name in "abcd"]
    before = await Agent(model).evaluate(cases[:3], runs=4)
    changed = ScriptedModel([Turn("no", match="a"), Turn("ok", match="[bcd]")], repeat=True)
    comparison = (await Agent(changed).evaluate(cases, runs=4)).compare(before)
    assert [(c.name, c.kind) for c in comparison.cases] == [
        ("a", "worse"), ("c", "better"), ("d", "new"), ("b", "same"),
    ]  # fmt: skip
    assert comparison.changes[0].is_clear
    assert str(comparison).startswith("3 cases changed, 1 came out the same")
    assert "fails now  expected 'ok', got 'no'" in str(comparison)
    assert [c["kind"] for c in comparison.data()["changes"]] == ["worse", "better", "new"]


async def test_a_case_that_passes_as_before_with_another_denial_has_changed():
    case = Case("?", contains="sunny")
    agent = Agent(calling(city="Rome"), tools=[weather])
    before = await agent.evaluate([case])

    @agent.on.tool_call
    def no(event: ToolCallEvent):
        return event.deny("closed")

    comparison = (await agent.evaluate([case])).compare(before)
    assert [change.kind for change in comparison.changes] == ["denials"]
    assert "denied now  " in str(comparison)


# --- what cannot be evaluated -------------------------------------------------------------------------


@each_row(
    ("cases", "options", "message"),
    [
        (list, {}, "there are no cases"),
        (lambda: "hello", {}, "cases are a list of Case"),
        (lambda: [("a", "b")], {}, "case 1 is a tuple; write Case"),
        (lambda: [Case("a", "b"), Case("a", "c")], {}, "two cases are named 'a': give one of them"),
        (lambda: [Case("a")], {}, "case 'a' expects nothing: give it expected"),
        (lambda: [Case("a", 7)], {}, "case 'a': the agent answers with text, and expected is 7"),
        (
            lambda: [Case("a", "b", at_least=2)],
            {},
            "case 'a': at_least is a share of the runs from 0 to 1",
        ),
        (lambda: [Case("a", check=7)], {}, "the check of case 'a' is a function, not 7"),
        (lambda: [Case("a", check=late())], {}, "pass `late`, not `late(...)`"),
        (lambda: [Case("a", "b")], {"runs": 0}, "runs is at least 1, not 0"),
        (lambda: [Case("a", "b")], {"concurrency": 0}, "concurrency is at least 1"),
        (
            lambda: [Case("a", "b")],
            {"at_least": 90},
            "at_least is a share of the runs from 0 to 1, not 90",
        ),
    ],
)
async def test_what_cannot_be_evaluated_is_explained(cases, options, message):
    with pytest.raises(HooklineError) as raised:
        await Agent(says("ok")).evaluate(cases(), **options)
    assert message in str(raised.value)


async def test_an_expected_value_of_another_type_than_the_output_is_refused_before_any_run():
    model = says("{}")
    with pytest.raises(EvalError, match="case 'a': expected does not fit output=Invoice: total: "):
        await Agent(model, output=Invoice).evaluate([Case("a", {"number": "1", "total": "much"})])
    assert model.requests == []
