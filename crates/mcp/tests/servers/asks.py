"""A server that asks people before it does anything, by the official Python library, over stdio: asks.py [LEGACY].

It speaks both eras. In 2026-07-28 a call ends with what it asks and is made again with the answers; before, it asks while the
call is open. Its state is sealed with a key of its own, so that it outlives the process.
"""
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from mcp_types import (
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestURLParams, InputRequiredResult,
    ListRootsRequest, SamplingMessage, TextContent, Tool, ToolChoice, ToolResultContent,
)
from pydantic import BaseModel, Field

server = MCPServer("asks", request_state_security=RequestStateSecurity(keys=["k" * 32]))


class Guest(BaseModel):
    name: str = Field(title="Your name", min_length=2)
    nights: int = Field(default=2, ge=1, le=30)
    breakfast: bool = Field(default=False)


class Room(BaseModel):
    kind: str = Field(description="single or double")


def guest(town: str) -> Elicit[Guest]:
    return Elicit(f"Who travels to {town}?", Guest)


def room(guest: Annotated[Guest, Resolve(guest)]) -> Elicit[Room]:
    return Elicit(f"Which room for {guest.name}?", Room)


@server.tool()
def book(town: str, guest: Annotated[Guest, Resolve(guest)]) -> str:
    """Books a bed in a town."""
    return f"booked {town} for {guest.name}, {guest.nights} nights, breakfast {guest.breakfast}"


@server.tool()
def suite(town: str, guest: Annotated[Guest, Resolve(guest)], room: Annotated[Room, Resolve(room)]) -> str:
    """Books a room in a town; asks twice."""
    return f"booked a {room.kind} room in {town} for {guest.name}"


@server.tool()
async def pay(context: Context) -> InputRequiredResult | str:
    """Pays at an address."""
    if context.input_responses is None:
        params = ElicitRequestURLParams(message="Pay 5 EUR.", url="https://pay.example.org/i/7?x=1", elicitation_id="i7")
        return InputRequiredResult(input_requests={"pay": ElicitRequest(params=params)}, request_state="invoice 7")
    return f"{context.request_state}: {context.input_responses['pay'].action}"


@server.tool()
async def where(context: Context) -> InputRequiredResult | str:
    """Tells the folders that it is to work in."""
    if context.input_responses is None:
        return InputRequiredResult(input_requests={"where": ListRootsRequest()}, request_state="looking")
    roots = context.input_responses["where"].roots
    return f"{context.request_state}: " + ", ".join(f"{root.name} at {root.uri}" for root in roots)


@server.tool()
async def rhyme(word: str, context: Context) -> InputRequiredResult | str:
    """Has a model find a rhyme."""
    if context.input_responses is None:
        said = SamplingMessage(role="user", content=TextContent(text=f"What rhymes with {word}?"))
        params = CreateMessageRequestParams(messages=[said], max_tokens=50, system_prompt="One word.")
        return InputRequiredResult(input_requests={"model": CreateMessageRequest(params=params)}, request_state=word)
    answer = context.input_responses["model"]
    return f"{context.request_state} rhymes with {answer.content.text}, says {answer.model}"


@server.tool()
async def throw(context: Context) -> InputRequiredResult | str:
    """Has a model throw dice that are here."""
    said = [SamplingMessage(role="user", content=TextContent(text="Throw."))]
    if context.input_responses is not None:
        answer = context.input_responses["model"]
        if context.request_state == "thrown":
            return f"{answer.stop_reason}: {answer.content.text}"
        use = answer.content[0] if isinstance(answer.content, list) else answer.content
        gave = ToolResultContent(tool_use_id=use.id, content=[TextContent(text=f"{use.input['sides']} sides, a six")])
        said += [SamplingMessage(role="assistant", content=[use]), SamplingMessage(role="user", content=[gave])]
    dice = Tool(name="dice", description="Throws.", input_schema={"type": "object"})
    params = CreateMessageRequestParams(messages=said, max_tokens=50, tools=[dice], tool_choice=ToolChoice(mode="required"))
    request = {"model": CreateMessageRequest(params=params)}
    return InputRequiredResult(input_requests=request, request_state="thrown" if len(said) > 1 else "asked")


@server.prompt()
async def tidy(context: Context) -> InputRequiredResult | str:
    """Asks to tidy up the folders."""
    if context.input_responses is None:
        return InputRequiredResult(input_requests={"where": ListRootsRequest()})
    return "Tidy up " + ", ".join(root.name for root in context.input_responses["where"].roots)


server.run("stdio")
