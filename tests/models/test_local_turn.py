"""The local model in a whole turn: a real model, a real tool, the production path."""

import pytest

from hookline.models import Models
from hookline.runtime.app import Hookline
from hookline.tools import tool
from hookline.tools.registry import Registry


@pytest.fixture
def local_app(tmp_path, models_home):
    app = Hookline(home=tmp_path / "home", workspace=tmp_path, models=Models(home=models_home))
    app.load_hooks(packages=False)
    app.options = {"max_tokens": 24}
    return app


async def test_a_message_is_answered_with_text(local_app):
    local_app.options = {"max_tokens": 4}
    async with local_app.running():
        result = await local_app.process({"content": "Say hello."})
    assert result.model_output.strip()
    assert result.usage["output_tokens"] > 0


async def test_a_forced_call_runs_its_tool_and_the_model_goes_on(local_app):
    cities = []

    @tool(side_effects="none", registry=Registry())
    def weather(city: str) -> str:
        """Tell the weather in a city."""
        cities.append(city)
        return "sunny"

    local_app.tools.add(weather)
    local_app.tool_choice = {"name": "weather"}
    async with local_app.running():
        result = await local_app.process({"content": "What is the weather in Paris?"})
        entries = await local_app.store().entries(result.session_id)
    assert len(cities) == 1
    assert [e.payload["content"] for e in entries if e.kind == "tool_result"] == ["sunny"]
    assert result.model_output.strip()
