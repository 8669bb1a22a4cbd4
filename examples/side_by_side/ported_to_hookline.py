from dataclasses import dataclass

from pydantic import BaseModel

from hookline import Agent
from hookline.agent.run import Limits
from hookline.events import AgentStopEvent


@dataclass
class Library:
    loans: dict[str, str]

    def due(self, title: str) -> str:
        """Tell when a loan ends."""
        return self.loans.get(title, "not on loan")

    def renew(self, title: str) -> str:
        """Renew a loan."""
        self.loans[title] = "Monday"
        return "Monday"


class Reply(BaseModel):
    text: str
    urgent: bool


library = Library({"Dune": "Friday"})
agent = Agent(
    "openai:gpt-5",
    instructions="You are the help desk of a library.",
    tools=[library.due, library.renew],
    output=Reply,
    limits=Limits(steps=5),
)


@agent.on.agent_stop
def is_sentence(event: AgentStopEvent):
    if not Reply.model_validate_json(event.response).text.endswith("."):
        return event.deny("answer in whole sentences")


print(agent.run_sync("When is Dune due?", session="ada").output.text)
print(agent.run_sync("Renew it, please.", session="ada").output.text)
