"""Sending again over HTTP."""

from ..gateway.conftest import served  # noqa: F401  (a fixture)


async def test_a_request_with_a_key_that_was_accepted_before_is_refused(served, scripted):  # noqa: F811
    scripted("one", "two")
    async with served() as web:
        at = f"{web.url}api/sessions/web:test/messages"
        key = {"idempotency-key": "order-17"}
        async with web.http.post(at, json={"text": "hi"}, headers=key) as response:
            assert (await response.json())["text"] == "one"
        async with web.http.post(at, json={"text": "hi"}, headers=key) as response:
            assert response.status == 409
            assert "accepted before" in (await response.json())["detail"]
        assert (await web.say("more"))["text"] == "two"
