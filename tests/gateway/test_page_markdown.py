"""Markdown as the page draws it, in Chromium."""

import asyncio

import pytest
import pytest_asyncio

from hookline.models import ScriptedModel

from .page import CHROMIUM, MISSING, browser, opened, serving

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
    pytest.mark.asyncio(loop_scope="module"),  # one browser for all
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium():
    async with browser() as found:
        yield found


async def test_markdown_is_drawn(tmp_path, chromium):
    async with serving(tmp_path, ScriptedModel(["hi"])) as house:
        page = await opened(chromium, house)
        draw = """async text => {
            const { markdown } = await import('/markdown.js');
            const place = document.createElement('div');
            place.append(...markdown(text));
            return place.innerHTML.replace(/ (target|rel|title|tabindex|role|aria-label)="[^"]*"/g, '');
        }"""
        cases = {
            "a *b* **c** ***d*** ~~e~~ `f*g*`": "<p>a <em>b</em> <strong>c</strong> "
            "<strong><em>d</em></strong> <del>e</del> <code>f*g*</code></p>",
            "snake_case_name and 2 * 3 and **open": "<p>snake_case_name and 2 * 3 and **open</p>",
            "- a\n- b\n  - c\n\n1. d\n2. e": "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"
            '<ol start="1"><li>d</li><li>e</li></ol>',
            "## T\ntext\nmore": "<h3>T</h3><p>text<br>more</p>",
            "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
            "see https://a.org/x_y_z.": '<p>see <a href="https://a.org/x_y_z">https://a.org/x_y_z</a>.</p>',
            "[*a* b](https://a.org) [c] d": '<p><a href="https://a.org/"><em>a</em> b</a> [c] d</p>',
            "a|b\n-|-:\n1|2": '<div class="table"><table><thead><tr><th class="">a</th>'
            '<th class="end">b</th></tr></thead><tbody><tr><td class="">1</td>'
            '<td class="end">2</td></tr></tbody></table></div>',
            r"\*not\* `` a`b `` <b>": "<p>*not* <code>a`b</code> &lt;b&gt;</p>",
            "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>",
        }
        for text, wanted in cases.items():
            assert await page.evaluate(draw, text) == wanted, text


async def test_text_that_grows_is_drawn_as_text_that_came_at_once(tmp_path, chromium):
    text = (
        "# T\n\n- a\n- b\n\n  more of b\n\n1. c\n\nend *of*\nit\n\n```py\nx = 1\n\n\ny = 2\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n> r\n\nlast `code`\r\n\r\nline"
    )
    async with serving(tmp_path, ScriptedModel(["hi"])) as house:
        page = await opened(chromium, house)
        grown, whole = await page.evaluate(
            """async text => {
                const { markdown, Growing } = await import('/markdown.js');
                const [a, b] = [document.createElement('div'), document.createElement('div')];
                const growing = new Growing(a);
                for (const char of text) { growing.add(char); growing.draw(); }
                b.append(...markdown(text));
                return [a.innerHTML, b.innerHTML];
            }""",
            text,
        )
        assert grown == whole


async def test_text_made_to_take_forever_is_drawn_all_the_same(tmp_path, chromium):
    size = 50_000
    hostile = [
        mark * size
        for mark in (
            "*a ",
            "**",
            "[",
            "![",
            "`a``",
            "> ",
            "- ",
            "_a_",
            "<http://",
            "](",
            "~~a",
            "|",
            " ",
        )
    ]
    hostile += [
        "#" + " " * size + "#x",
        "```" + " " * size + "`",
        "a|b\n-" + " " * size + "::",
        "`" + " " * size,
    ]
    hostile += ["".join(f"{' ' * n}- x\n" for n in range(600)), "[a](" * size, "*a **b " * size]
    async with serving(tmp_path, ScriptedModel(["hi"])) as house:
        page = await opened(chromium, house)
        for text in hostile:
            drawn = """async text => {
                const { markdown } = await import('/markdown.js');
                const place = document.createElement('div');
                place.append(...markdown(text));
                let deepest = 0, level = [...place.children];
                for (; level.length; deepest += 1) level = level.flatMap(node => [...node.children]);
                return deepest;
            }"""
            # Quadratic work on this much text takes minutes.
            assert await asyncio.wait_for(page.evaluate(drawn, text), 60) < 60
