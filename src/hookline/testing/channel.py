"""`RecordingChannel`: records what a turn sends, and answers its questions."""

from __future__ import annotations

from typing import Any

from hookline.channel import Channel, Note, Question
from hookline.types import Envelope, StreamEvent


class RecordingChannel(Channel):
    """Keeps everything. It answers questions with the given answers, then with no answer."""

    def __init__(self, *answers: str | None) -> None:
        self.sent: list[Envelope] = []
        self.events: list[StreamEvent] = []
        self.notes: list[str] = []
        self.questions: list[Question] = []
        self._answers = list(answers)

    @property
    def text(self) -> str:
        """The text that was streamed."""
        return "".join(event.data["delta"] for event in self.events if event.kind == "text")

    def kinds(self, *wanted: str) -> list[str]:
        """The kinds of the events, or of those wanted."""
        return [event.kind for event in self.events if not wanted or event.kind in wanted]

    async def send(self, message: Envelope) -> bool:
        """Keep a message."""
        self.sent.append(message)
        return True

    def stream(self, event: StreamEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    def notify(self, note: Note) -> None:
        """Keep a note."""
        self.notes.append(note.text)

    async def ask(self, question: Question) -> str | None:
        """Keep a question, and give the next answer."""
        self.questions.append(question)
        answer: Any = self._answers.pop(0) if self._answers else None
        return answer
