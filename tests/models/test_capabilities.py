"""The table of capabilities, and the one table of prefixes."""

import re
from base64 import b64encode
from pathlib import Path

from hookline.models import LocalModel, Models
from hookline.models.anyllm import AnyModel
from hookline.models.capabilities import CAPABILITIES, capability_table
from hookline.models.http.services import SERVICES
from hookline.models.model import ModelRequest
from hookline.models.prompt import chat_messages
from hookline.types import AudioPart, FilePart, ImagePart, TextPart

from ..tables import each_row

DOCS = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_table_in_the_documentation_is_the_one_that_the_code_declares():
    assert capability_table() in DOCS.read_text(), "copy capability_table() into docs/models.md"


def test_every_client_declares_the_capabilities_of_its_provider():
    models = Models()
    for name in ("openai", "openai-responses", "anthropic", "google"):
        assert models.get(f"{name}:m").capabilities is CAPABILITIES[name]  # type: ignore[attr-defined]
    assert LocalModel.capabilities is CAPABILITIES["local"]
    assert AnyModel.capabilities is CAPABILITIES["any"]


def test_every_prefix_is_a_provider_and_in_the_documentation():
    documented = set(re.findall(r"`([\w-]+):", DOCS.read_text()))
    assert set(SERVICES) <= set(Models().providers) & documented


@each_row("part", [ImagePart(b"\x89PNG"), AudioPart(b"RIFF"), FilePart(b"%PDF")])
def test_the_local_model_reads_a_note_in_place_of_media(part):
    request = ModelRequest(messages=[{"role": "user", "content": [TextPart("look"), part]}])
    text = str(chat_messages(request))
    assert f"[{part.type}, {part.mime_type}: this model takes none]" in text
    assert b64encode(part.data).decode() not in text
