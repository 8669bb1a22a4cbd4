"""The HTTP routes, one module per subject."""

from typing import Any, Final

from pydantic import BaseModel, Field


class ProblemBody(BaseModel):
    """Why a request was refused."""

    detail: str | list[Any] = Field(description="One sentence, or what is wrong field by field.")


def _said(text: str) -> dict[str, Any]:
    # A reference, not the model: FastAPI would build a validator of it for each response of each
    # route.
    schema = {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    400: _said("The body cannot be read."),
    401: _said("A token is needed, or the one given is wrong."),
    403: _said("Pages of this origin may not call the gateway, or only an operator may do this."),
    408: _said("The request was not complete in time."),
    413: _said("The body is larger than the gateway takes."),
    414: _said("The query is longer than the gateway takes."),
    421: _said("The gateway is not called by this name."),
    422: _said("Not JSON, or a field is missing, unknown or of the wrong type."),
    429: _said("Too many requests or wrong tokens; `Retry-After` says when to come back."),
    431: _said("The head of the request is larger than the gateway takes."),
}
"""Responses that any request may get."""

BUSY: Final = {
    503: _said("The gateway is going down and takes no more messages, or has no room to keep one.")
}
FAILED: Final = {500: _said("The message was accepted, and answering it failed.")}
REFUSED: Final = {
    403: _said(
        "The answer does not count: an operator must give it, it is about another call than the one "
        "that was shown, or it comes from a process that the agent started."
    )
}
MISSING: Final = {404: _said("There is no such thing.")}
TAKEN: Final = {
    409: _said("A message with this id is still being answered, or its key was accepted before.")
}
