"""Gateways that are told twice to end, and two of them on one home."""

import json
import signal
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from .test_process import QUICK, SLOW, TOOL, gateway, page, post


def until_going_down(url: str) -> None:
    """Wait until the gateway takes nothing more: it has seen the first signal."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{url}ready", timeout=30).close()
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return
            raise
        time.sleep(0.01)
    raise AssertionError("the gateway is still ready")


@pytest.mark.parametrize(("first", "second", "code"), [("TERM", "TERM", 143), ("TERM", "INT", 130)])
def test_a_second_signal_ends_the_process_at_once(tmp_path, first, second, code):
    with gateway(tmp_path, SLOW, GATEWAY__DRAIN="600") as (process, url):
        at = f"{url}api/sessions/web:garden/messages"
        with post(at, "go", accept="text/event-stream") as response:
            while b"accepted" not in response.readline():
                pass
            process.send_signal(signal.Signals[f"SIG{first}"])
            until_going_down(url)
            assert process.poll() is None
            process.send_signal(signal.Signals[f"SIG{second}"])
            assert process.wait(30) == code
    with gateway(tmp_path, QUICK) as (process, url):
        assert answered(url) == ("assistant", "Here it is.")  # and nothing is lost


def answered(url: str) -> tuple[str, str]:
    """What was said last, once it is the answer."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            said = page(f"{url}api/sessions/web:garden")
        except urllib.error.HTTPError:  # the session is not there yet
            said = []
        if said and said[-1][0] == "assistant" and said[-1][1]:
            return said[-1]
        time.sleep(0.02)
    raise AssertionError("there is no answer")


@contextmanager
def waiting_for_the_model(url: str):
    """A turn whose tool has run, and whose model does not answer."""
    with post(f"{url}api/sessions/web:garden/messages", "go", accept="text/event-stream") as going:
        while b"tool_result" not in going.readline():
            pass
        yield


def test_a_turn_that_runs_in_one_gateway_is_left_alone_by_another_that_starts(tmp_path):
    with gateway(tmp_path, TOOL) as (_, url), waiting_for_the_model(url):
        with gateway(tmp_path, QUICK) as (second, other):
            said = page(f"{other}api/sessions/web:garden")
            second.send_signal(signal.SIGTERM)
            assert second.wait(30) == 0
        with gateway(tmp_path, QUICK) as (_, another):
            assert page(f"{another}api/sessions/web:garden") == said
    assert [role for role, _ in said] == ["user", "assistant", "tool"]


def test_of_two_gateways_that_start_after_a_crash_one_continues_the_turn(tmp_path):
    with gateway(tmp_path, TOOL) as (process, url), waiting_for_the_model(url):
        process.kill()
        process.wait(30)
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        both = [threads.submit(stack.enter_context, gateway(tmp_path, QUICK)) for _ in range(2)]
        started = [each.result() for each in both]
        for _, url in started:
            assert answered(url) == ("assistant", "Here it is.")
        for process, _ in started:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    with gateway(tmp_path, QUICK) as (process, url):
        said = page(f"{url}api/sessions/web:garden")
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant"]
    assert json.dumps(said).count("Here it is.") == 1
