"""The report of an evaluation as JUnit XML, for continuous integration."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hookline.text.document import counted
from hookline.text.printable import printable

if TYPE_CHECKING:
    from .report import CaseResult, EvalReport


def junit(report: EvalReport) -> str:
    """The report as XML. A case fails if it misses its threshold, or helps to miss the one of all."""
    enough = report.rate.rate >= report.at_least
    suite = ElementTree.Element("testsuite", name=_safe(report.title), time=f"{report.elapsed:.3f}")
    failures = errors = 0
    for case in report.cases:
        taken = sum(run.seconds for run in case.runs)
        element = ElementTree.SubElement(
            suite, "testcase", classname=_safe(report.title), name=_safe(case.name), time=f"{taken:.3f}"
        )
        if case.ok and (enough or not case.reasons):
            continue
        is_error = all(run.is_error for run in case.runs)
        failures, errors = failures + (not is_error), errors + is_error
        found = ElementTree.SubElement(
            element, "error" if is_error else "failure", message=_safe(_message(case))
        )
        found.text = _safe("\n".join(case.reasons))
    suite.set("tests", str(len(report.cases)))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _message(case: CaseResult) -> str:
    rate = case.rate
    return f"{rate.passed} of {counted(rate.runs, 'run')} passed: {case.reasons[0]}"


def _safe(text: str) -> str:
    """Text without characters that XML does not allow."""
    return printable(text).replace("\ufffe", "�").replace("\uffff", "�")
