"""The user of a message is the user of its turn and of its subagents, on whichever worker they run."""

import json
import signal

import pytest

from .. import postgres
from .conftest import letter
from .processes import machines
from .test_takeover import TOOL_THEN_STUCK

pytestmark = pytest.mark.slow

SECRET = "ghp_" + "a1B2" * 9
RULE = """
@id("no-files-for-guests")
forbid (principal, action, resource)
when { principal.user == "guest" && resource == Tool::"write_file" };
"""
DELEGATES = """
[[turns]]
match = "^hi"
[[turns.tool_calls]]
name = "delegate"
arguments = { tasks = ["write it"] }
[[turns]]
match = "^write it"
[[turns.tool_calls]]
name = "write_file"
arguments = { path = "made.txt", content = "made" }
[[turns]]
match = "^write it"
text = "written or not"
[[turns]]
match = "^hi"
text = "done"
"""


@pytest.fixture
async def others(cluster):
    async with machines(cluster.folder, cluster.schema) as made:
        yield made


@pytest.mark.parametrize("user", ["guest", "admin"])
async def test_a_rule_on_the_user_holds_in_a_subagent_on_the_worker_that_takes_over(
    cluster, others, user
):
    rules = cluster.folder / "rules.cedar"
    rules.write_text(RULE)
    settings = {
        "POLICY__FLOOR__CEDAR": str(rules),
        "AUDIT__ENABLED": "true",
        "REDACTION__ENABLED": "true",
    }
    box = await cluster.gateway(app=cluster.app(redaction={"enabled": True}))
    first = await others.worker(TOOL_THEN_STUCK, **settings)
    await box.handle(letter(f"hi {SECRET}", chat=user))
    await others.until(others.ran)
    first.signal(signal.SIGKILL)
    await others.worker(DELEGATES, **settings)
    (result,) = await box.answers(f"{user}-1")
    assert result.model_output == "done"
    assert (cluster.folder / "work" / "made.txt").exists() == (user == "admin")
    audits = sorted(cluster.folder.glob("machine*/audit/audit.jsonl"))
    records = [json.loads(line) for path in audits for line in path.read_text().splitlines()]
    calls = [each for each in records if each["kind"] == "decision"]
    assert {(each["user"], each["channel"], each["chat"]) for each in calls} == {(user, "mail", user)}
    (written,) = [each for each in calls if each["tool"] == "write_file"]
    assert written["outcome"] == ("denied" if user == "guest" else "allowed")
    assert written["depth"] == 1
    assert_nothing_kept(cluster.schema)


def assert_nothing_kept(schema):
    """No row of the tape or of the queue has the secret of the message, once it is answered."""
    for (table,) in postgres.fetch(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'"):
        rows = postgres.fetch(f'SELECT t::text FROM "{schema}"."{table}" AS t')
        assert SECRET not in repr(rows), table
