"""`hookline worker` and `hookline gateway` as processes: signals, refusals, a database that fails."""

import asyncio
import json
import signal
import urllib.error
import urllib.request

import pytest

from hookline.models.script import Call, Turn
from hookline.serve.cluster.engine import FORMAT

from .. import postgres
from ..app.test_admission import Gate
from ..gateway.conftest import bearer
from ..proxy import through
from .conftest import letter
from .processes import machines
from .test_parking import has_begun
from .test_takeover import NEVER, TOOL_THEN_STUCK, turns_of

pytestmark = pytest.mark.slow

SHORT = '[[turns]]\ntext = "all of it"\nchunk = 1\ndelay = 0.05\n'


@pytest.fixture
async def others(cluster):
    async with machines(cluster.folder, cluster.schema) as made:
        yield made


def ask(url, text, message_id="m1"):
    """Say something over HTTP, and read the events of the answer to the end."""
    body = json.dumps({"text": text, "id": message_id}).encode()
    headers = {"content-type": "application/json", "accept": "text/event-stream", **bearer()}
    request = urllib.request.Request(f"{url}api/sessions/web:ada/messages", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        lines = response.read().decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


# --- ends -----------------------------------------------------------------------------------------


async def test_sigterm_lets_a_short_turn_finish_where_it_is(cluster, others):
    box = await cluster.gateway()
    worker = await others.worker(SHORT)
    await box.handle(letter())
    await box.until(lambda: box.shown)
    worker.signal(signal.SIGTERM)
    (result,) = await box.answers("ada-1")
    assert result.model_output == "all of it"
    assert await worker.ended() == 0
    assert await turns_of(box) == (["ada-1"], ["started", "completed"])
    assert postgres.fetch(f'SELECT count(*) FROM "{cluster.schema}".procrastinate_workers') == [(0,)]


async def test_sigterm_parks_a_long_turn_and_another_process_goes_on_with_it_once(cluster, others):
    box = await cluster.gateway()
    worker = await others.worker(TOOL_THEN_STUCK, WORKER__DRAIN="0.1")
    await box.handle(letter())
    await others.until(others.ran)
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0
    await others.worker('[[turns]]\ntext = "gone on"\n')
    (result,) = await box.answers("ada-1")
    assert (result.model_output, others.ran()) == ("gone on", ["once"])
    assert await turns_of(box) == (["ada-1"], ["started", "completed"])


async def test_an_http_client_gets_its_answer_though_the_worker_is_killed(cluster, others):
    gateway, url = await others.gateway("web", GATEWAY__WORKER="false")
    worker = await others.worker(TOOL_THEN_STUCK)
    asking = asyncio.create_task(asyncio.to_thread(ask, url, "work"))
    await others.until(others.ran)
    worker.signal(signal.SIGKILL)
    await others.worker('[[turns]]\ntext = "here it is"\nchunk = 4\n')
    events = await asking
    assert (events[-1]["type"], events[-1]["text"]) == ("end", "here it is")
    assert others.ran() == ["once"]
    gateway.signal(signal.SIGTERM)
    assert await gateway.ended() == 0


# --- refusals -------------------------------------------------------------------------------------


async def refused(others, *arguments, **settings):
    """The one line that a process says which does not start."""
    process = await others.start(*arguments, **settings)
    assert await process.ended() == 2, process.said
    (line,) = process.said
    return line


async def test_a_worker_without_a_shared_database_says_what_is_missing(cluster, others):
    line = await refused(others, "worker", TAPE__URL=None, TAPE__SCHEMA=None, TAPE__HOME=None)
    assert line.startswith("hookline: workers need tapes that several processes share: set [tape] url")


async def test_a_worker_whose_database_cannot_be_reached_says_so_without_the_password(cluster, others):
    url = "postgresql://hookline:hunter2@127.0.0.1:1/nowhere"
    line = await refused(others, "worker", TAPE__URL=url, TAPE__TIMEOUT="1")
    assert line.startswith("hookline: cannot ")
    assert "127.0.0.1:1/nowhere" in line
    assert "hunter2" not in line


async def test_settings_of_a_worker_that_make_no_sense_are_refused_by_name(cluster, others):
    line = await refused(others, "worker", WORKER__SILENCE="0.3")
    assert "worker" in line
    assert "silence must be at least twice the heartbeat" in line


@pytest.mark.parametrize("part", ["cluster", "tape"])
async def test_older_programs_refuse_newer_tables_and_those_that_run_end_themselves(
    cluster, others, part
):
    box = await cluster.gateway()
    worker = await others.worker()
    gateway, _ = await others.gateway("web", GATEWAY__WORKER="false")
    await box.handle(letter())
    await box.answers("ada-1")
    postgres.execute(f"UPDATE \"{cluster.schema}\".versions SET version = 99 WHERE part = '{part}'")
    for running in (worker, gateway):
        assert await running.ended() == 2
        assert running.said[-1].startswith("hookline: schema ")
        assert "has version 99" in running.said[-1]
        assert "update Hookline here" in running.said[-1]
        assert "Traceback" not in "".join(running.said)
    line = await refused(others, "worker")
    assert "has version 99" in line
    assert "update Hookline here" in line


async def test_a_job_of_a_newer_form_waits_for_workers_that_know_it(cluster, others):
    box = await cluster.gateway(drain=0.0)
    await box.handle(letter("from the future"))
    await box.handle(letter("of today", "bob"))
    newer = f"replace(queue_name, 'turns{FORMAT}', 'turns{FORMAT + 1}')"
    table = f'"{cluster.schema}".procrastinate_jobs'
    postgres.execute(f"UPDATE {table} SET queue_name = {newer} WHERE lock = 'mail:ada'")
    await others.worker()
    await box.answers("bob-1")
    jobs = f"SELECT lock, status::text, attempts FROM {table}"
    await others.until(lambda: postgres.fetch(jobs) == [("mail:ada", "todo", 0)])
    assert "ada-1" not in box.ends


# --- a database that fails ------------------------------------------------------------------------


async def test_the_database_is_cut_off_and_comes_back_and_nothing_is_lost_or_done_twice(
    cluster, others, proxy
):
    box = await cluster.gateway()
    script = (
        '[[turns]]\ntool_calls = [{ name = "shell", arguments = '
        '{ command = "echo once >> ran.txt; sleep 1" } }]\n[[turns]]\ntext = "done"\n'
    )
    worker = await others.worker(script, TAPE__URL=through(proxy))
    await box.handle(letter("work"))
    await others.until(others.ran)
    proxy.refusing = True
    proxy.cut()
    await box.handle(letter("meanwhile", "bob"))
    await worker.until("listening_again")
    proxy.refusing = False
    results = await box.answers("ada-1", "bob-1")
    assert [result.model_output for result in results] == ["done", "done"]
    assert others.ran().count("once") == 2  # each session once
    for chat in ("ada", "bob"):
        assert await turns_of(box, chat) == ([f"{chat}-1"], ["started", "completed"])


async def test_a_turn_that_the_database_leaves_in_the_middle_goes_on_when_it_is_back(
    proxy, cluster, others
):
    box = await cluster.gateway()
    script = TOOL_THEN_STUCK.replace("ran.txt", "ran.txt; sleep 1").replace('"never"', '"first"')
    script = script.replace("wait = 600", "") + '[[turns]]\ntext = "second"\n'
    worker = await others.worker(script, TAPE__URL=through(proxy), TAPE__TIMEOUT="2")
    for number in (1, 2):
        await box.handle(letter(number=number))
    await others.until(others.ran)
    proxy.refusing = True
    proxy.cut()
    await worker.until("message.failed")
    proxy.refusing = False
    results = await box.answers("ada-1", "ada-2")
    assert [result.model_output for result in results] == ["first", "second"]
    assert await turns_of(box) == (["ada-1", "ada-2"], ["started", "completed"] * 2)
    assert others.ran() == ["once"]


async def test_a_worker_in_a_black_hole_is_replaced_and_goes_on_working_when_it_is_back(
    cluster, others, proxy
):
    box = await cluster.gateway()
    lost = await others.worker(
        NEVER, TAPE__URL=through(proxy), TAPE__TIMEOUT="2", TAPE__STATEMENT_TIMEOUT="2"
    )
    await box.handle(letter("work"))
    await others.until(lambda: postgres.fetch(f'SELECT FROM "{cluster.schema}".entries'))
    proxy.forward.clear()
    proxy.backward.clear()
    other = await cluster.worker("by another", "never")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "by another"
    await other.drain()
    proxy.cut()
    proxy.forward.set()
    proxy.backward.set()
    await box.handle(letter("/help", "bob"))
    (helped,) = await box.answers("bob-1")
    assert helped.outcome == "handled"
    lost.signal(signal.SIGTERM)
    assert await lost.ended() == 0
    assert await turns_of(box) == (["ada-1"], ["started", "completed"])


async def test_a_worker_is_ended_in_good_order_while_the_database_is_away(proxy, cluster, others):
    box = await cluster.gateway()
    lost = await others.worker(NEVER, TAPE__URL=through(proxy), TAPE__TIMEOUT="1", WORKER__DRAIN="0.1")
    await box.handle(letter())
    await others.until(lambda: postgres.fetch(f'SELECT FROM "{cluster.schema}".entries'))
    proxy.refusing = True
    proxy.cut()
    lost.signal(signal.SIGTERM)
    assert await lost.ended() == 0
    assert "Traceback" not in "".join(lost.said)
    await cluster.worker("gone on")
    (result,) = await box.answers("ada-1")
    assert result.model_output == "gone on"


async def test_after_a_loss_of_the_database_for_all_workers_live_ones_are_not_taken_for_dead(
    proxy, cluster, caplog
):
    box = await cluster.gateway()
    apps = [cluster.app(Turn(tool_calls=[Call("wait")]), "done", url=through(proxy)) for _ in range(2)]
    gates = [Gate(app) for app in apps]
    for app in apps:
        await cluster.worker(app=app)
    await box.handle(letter("work"))
    await asyncio.wait(
        [asyncio.create_task(gate.entered.wait()) for gate in gates],
        return_when=asyncio.FIRST_COMPLETED,
    )
    proxy.refusing = True
    proxy.cut()
    await asyncio.sleep(3)  # longer than their silence
    proxy.refusing = False
    await asyncio.sleep(1)
    for gate in gates:
        gate.open.set()
    (result,) = await box.answers("ada-1")
    assert result.model_output == "done"
    assert not [record for record in caplog.records if "takes_over" in record.message]
    results = await box.gateway.app.store().entries("mail:ada", kinds={"tool_result"})
    assert [result.payload["content"] for result in results] == ["waited"]


async def test_a_gateway_that_loses_the_database_for_a_moment_still_delivers_its_own_answers(
    proxy, cluster
):
    box = await cluster.gateway(app=cluster.app(url=through(proxy)))
    other = await cluster.gateway()
    await box.handle(letter())
    proxy.refusing = True
    proxy.cut()
    worker = await cluster.worker("yours")
    await has_begun(worker, turns=2)
    await other.gateway.cluster._sweep()
    proxy.refusing = False
    (result,) = await box.answers("ada-1")
    assert (result.model_output, other.ends) == ("yours", {})


async def test_a_gateway_without_its_database_refuses_messages_and_takes_them_when_it_is_back(
    proxy, cluster, others
):
    _, url = await others.gateway("web", TAPE__URL=through(proxy), TAPE__TIMEOUT="1")
    proxy.refusing = True
    proxy.cut()
    with pytest.raises(urllib.error.HTTPError) as refusal:
        await asyncio.to_thread(ask, url, "hello")
    said = refusal.value.read().decode()
    assert refusal.value.code == 503
    assert "try again later" in said
    proxy.refusing = False
    events = await asyncio.to_thread(ask, url, "hello")
    assert (events[-1]["type"], events[-1]["text"]) == ("end", "answered")


async def test_a_message_id_that_cannot_be_kept_is_the_clients_fault(cluster, others):
    _, url = await others.gateway("web")
    with pytest.raises(urllib.error.HTTPError) as refusal:
        await asyncio.to_thread(ask, url, "hello", "a\0b")
    assert refusal.value.code == 422
    assert "NUL" in refusal.value.read().decode()
