"""A peer for the tests: an MCP server on the official Python SDK (mcp 2.x), over stdio."""

import asyncio
import os

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("python-peer")


class Calculated(BaseModel):
    sum: int
    product: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def add(a: int, b: int) -> str:
    """Adds two numbers"""
    return str(a + b)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True), structured_output=False)
def say(text: str) -> str:
    """Gives the text back"""
    return text


@server.tool()
def calculate(a: int, b: int) -> Calculated:
    """Sum and product, as structured content"""
    return Calculated(sum=a + b, product=a * b)


@server.tool(structured_output=False)
async def count(steps: int, context: Context) -> str:
    """Counts up to `steps`, with progress"""
    for step in range(1, steps + 1):
        await asyncio.sleep(0.02)
        await context.report_progress(step, steps)
    return f"counted to {steps}"


@server.tool(structured_output=False)
def fail(text: str) -> str:
    """Fails, as a tool does"""
    raise ToolError(text)


@server.tool()
def dot() -> Image:
    """An image of one dot"""
    return Image(data=b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", format="gif")


@server.tool(structured_output=False)
def crash() -> str:
    """Ends the server"""
    os._exit(7)


server.run()
