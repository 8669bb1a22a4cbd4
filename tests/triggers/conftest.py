"""An app with triggers: what its settings say, what its channels got."""

from contextlib import asynccontextmanager

import pytest

from hookline.channel import Channel
from hookline.ext.triggers import Triggers

from .. import postgres


@pytest.fixture
def schema():
    """The name of a schema of the test's own."""
    name = postgres.new_schema()
    yield name
    postgres.drop(name)


@pytest.fixture
def settings(app):
    """Write the user's settings."""

    def write(text: str) -> None:
        app.home.mkdir(exist_ok=True)
        (app.home / "config.toml").write_text(text)
        app.config.reload()

    return write


@pytest.fixture
def sent(app):
    """What was delivered to channels, as `(channel, chat, text)`."""
    found = []

    class Elsewhere(Channel):
        async def send(self, message):
            if message["channel"].startswith("trigger:"):
                return False  # no channel has this name
            found.append((message["channel"], message["chat_id"], message["content"]))
            return True

    app.channel = Elsewhere()
    return found


@pytest.fixture
def errors(app):
    """What `on_error` was told, as `(stage, error)`."""
    found = []
    app.hooks.register("on_error", lambda stage, error: found.append((stage, error)))
    return found


@pytest.fixture
def serving(app):
    """Run the app's triggers, as a server does."""

    @asynccontextmanager
    async def serve(**options):
        triggers = Triggers(app, **options)
        async with app.running():
            await triggers.start()
            try:
                yield triggers
            finally:
                await triggers.stop()

    return serve


def said(model):
    """What the model was asked, the last user message of each request."""
    return [request.messages[-1]["content"] for request in model.requests]
