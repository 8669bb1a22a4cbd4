"""The client against a server that others wrote: the local runtime's, with its real model."""

import asyncio
from contextlib import aclosing
from importlib import import_module
from pathlib import Path

import pytest

from hookline.models import ContextOverflow, ModelFailed, ModelRequest, Models

from .ask import events, one, text_of, user

KEY = "sk-of-the-local-server"


@pytest.fixture(scope="module")
def server(models_home: Path):
    """The runtime serving on a free port of loopback."""
    runtime = import_module("xllamacpp")
    params = runtime.CommonParams()
    params.model.path = str(next(models_home.rglob("*.gguf")))
    params.n_ctx = 1024
    params.n_batch = params.n_ubatch = 64
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = -1
    params.port = 0
    params.api_keys = [KEY]
    return runtime.Server(params)


@pytest.fixture
async def models(server):
    settings = {"base_url": f"{server.listening_address}/v1", "api_key": KEY}
    models = Models(
        settings={"llamacpp": settings, "openai-compatible": {**settings, "api_key": "sk-no"}}
    )
    yield models
    await models.close()


async def test_text_is_streamed_with_its_counts(models):
    request = ModelRequest(messages=user("Say hello."), options={"max_tokens": 12, "seed": 1})
    found = await events(models.get("llamacpp:any"), request)
    assert sum(each.kind == "text" for each in found) > 1
    assert text_of(found).strip()
    counts = one(found, "usage")
    assert counts["input_tokens"] > 5
    assert 0 < counts["output_tokens"] <= 12
    assert "cached_tokens" in counts
    assert one(found, "final")["finish_reason"] in ("stop", "length")


async def test_a_closed_stream_frees_the_server_for_the_next(models):
    model = models.get("llamacpp:any")
    request = ModelRequest(messages=user("Count to a thousand."), options={"max_tokens": 900})
    async with aclosing(model.stream(request)) as stream:
        await anext(stream)
    short = ModelRequest(messages=user("Hi."), options={"max_tokens": 2})
    found = await asyncio.wait_for(events(model, short), 20)
    assert found[-1].kind == "final"


async def test_a_wrong_key_is_refused(models):
    with pytest.raises(ModelFailed, match="Invalid API Key") as caught:
        await events(models.get("openai-compatible:any"), ModelRequest(messages=user("Hi.")))
    assert not caught.value.transient
    assert "sk-no" not in str(caught.value)


async def test_a_conversation_beyond_its_context_overflows(models):
    request = ModelRequest(messages=user("word " * 3000))
    with pytest.raises(ContextOverflow) as caught:
        await events(models.get("llamacpp:any"), request)
    assert caught.value.window == 1024
    assert caught.value.needed > 3000
