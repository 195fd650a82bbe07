"""LangChain's adapters for MCP, on an SDK before 2."""

import asyncio
import json
import os
import sys

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
    text = lambda said: said if isinstance(said, str) else said[0]["text"]
    print(json.dumps({"tools": list(by_name), "text": text(said), "echoed": json.loads(text(echoed))}))


asyncio.run(main())
