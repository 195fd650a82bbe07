"""LangChain's adapters for MCP, on an SDK before 2."""

import asyncio
import json
import os
import sys
from importlib.metadata import version

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main():
    where, *rest = sys.argv[1:]
    server = {"transport": "streamable_http", "url": where}
    if not where.startswith("http"):
        server = {"transport": "stdio", "command": where, "args": rest, "env": dict(os.environ)}
    client = MultiServerMCPClient({"steadyhand": server})
    tools = await client.get_tools()
    by_name = {tool.name: tool for tool in tools}
    said = await by_name["test_simple_text"].ainvoke({})
    echoed = await by_name["echo"].ainvoke({"word": "hi"})
    async with client.session("steadyhand", auto_initialize=False) as session:
        agreed = (await session.initialize()).protocolVersion
    text = lambda said: said if isinstance(said, str) else said[0]["text"]
    said = {
        "tools": list(by_name),
        "text": text(said),
        "echoed": json.loads(text(echoed)),
        "version": agreed,
        "client": "langchain-mcp-adapters " + version("langchain-mcp-adapters"),
    }
    print(json.dumps(said))


asyncio.run(main())
