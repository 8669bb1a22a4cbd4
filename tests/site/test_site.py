"""The documentation site: built strictly, searchable without a network, usable by everyone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.page import CHROMIUM, MISSING, browser, serious_faults

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the build script uses GNU sed"),
]

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"


@pytest.fixture(scope="module")
def site() -> str:
    """The address of the site in a folder on disk."""
    venv = Path(sys.prefix)
    done = subprocess.run(
        [ROOT / "scripts" / "docs", "build"],
        env={"PATH": "/usr/bin:/bin", "VENV": str(venv), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE.as_uri()


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
async def test_a_page_asks_no_other_host_and_search_finds_a_hook(site):
    async with browser() as chromium:
        page = await chromium.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(f"{site}/index.html")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("around_model_call")
        await page.wait_for_selector("text=around_model_call")
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_fault(site, scheme):
    async with browser() as chromium:
        context = await chromium.new_context(color_scheme=scheme, reduced_motion="reduce")
        for name in ("index", "turn", "api", "hooks"):
            page = await context.new_page()
            await page.goto(f"{site}/{name}.html")
            assert await serious_faults(page) == [], name


def test_the_reference_of_the_api_has_the_members_of_an_agent(site):
    text = (SITE / "api.html").read_text()
    for name in ("run", "run_sync", "stream", "close", "as_tool", "chat", "serve", "from_home"):
        assert f'id="hookline.runtime.agent.Agent.{name}"' in text
