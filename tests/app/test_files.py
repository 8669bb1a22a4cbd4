"""A document in a message: it reaches the model from every door, and survives the tape."""

from base64 import b64encode
from typing import Any

import pytest

from hookline import Agent
from hookline.agent.journal import plain_part
from hookline.errors import BadInput
from hookline.ext.mcp.results import content_of
from hookline.models import ModelRequest, ScriptedModel
from hookline.observe.replay.record import restored
from hookline.runtime.attachments import attachments
from hookline.runtime.inbox.codec import packed, unpacked
from hookline.serve.completions import _part
from hookline.serve.frames import PartIn, part_frame
from hookline.tools.output import model_content
from hookline.types import FilePart, TextPart

from ..tables import each_row

PDF = FilePart(b"%PDF-1.7 ...", "application/pdf", "offer.pdf")
DATA = b64encode(PDF.data).decode()


def test_a_mentioned_pdf_is_attached_and_one_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "offer.pdf").write_bytes(PDF.data)
    assert attachments("read @offer.pdf", tmp_path) == [PDF]
    (tmp_path / "offer.pdf").write_bytes(PDF.data + bytes(5_000_001))
    with pytest.raises(BadInput, match=r"@offer\.pdf cannot be attached: it is too large"):
        attachments("read @offer.pdf", tmp_path)


@each_row("part", [PDF, FilePart(url="https://x.org/a.pdf"), FilePart(b"a,b", "text/csv")])
def test_a_file_survives_the_tape_and_the_inbox(part):
    assert restored([plain_part(part)]) == [part]
    assert unpacked(packed({"content": "x", "parts": [part]}))["parts"] == [part]


def test_a_file_that_is_too_large_for_the_tape_is_a_note_there():
    note = plain_part(FilePart(bytes(5_000_001)))
    assert note["text"] == "[file, application/pdf, 5,000,001 bytes: too large to be kept]"


def test_the_gateway_takes_and_sends_files():
    frame: Any = {"type": "file", "mime_type": "application/pdf", "data": DATA, "name": "offer.pdf"}
    assert PartIn(**frame).part() == PDF
    assert part_frame(PDF) == frame
    file = {"filename": "offer.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}
    assert _part({"type": "file", "file": file}) == PDF
    for wrong in ({"type": "file"}, {"type": "file", "file": {"file_data": "data:x;base64,%"}}):
        with pytest.raises(BadInput):
            _part(wrong)


def test_a_tool_and_a_server_of_tools_can_return_a_file():
    from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource

    assert model_content([PDF, "see"]) == [PDF, TextPart("see")]
    resource = BlobResourceContents(uri="file:///a.pdf", mime_type="application/pdf", blob=DATA)
    block = EmbeddedResource(type="resource", resource=resource)
    assert content_of(CallToolResult(content=[block])) == [FilePart(PDF.data)]


def test_the_options_of_an_agent_go_with_its_requests():
    seen: list[ModelRequest] = []

    class Watched(ScriptedModel):
        def stream(self, request: ModelRequest) -> Any:
            seen.append(request)
            return super().stream(request)

    Agent(Watched(["ok"]), options={"thinking": "low", "temperature": 0.1}).run_sync("hi")
    assert seen[0].options == {"thinking": "low", "temperature": 0.1}
