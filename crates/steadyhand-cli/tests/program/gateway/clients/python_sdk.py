"""The SDK for Python, 2.x, in the mode that is named first: auto or legacy."""

import asyncio
import json
import os
import sys
from importlib.metadata import version

from mcp import Client, StdioServerParameters


async def main():
    mode, where, *rest = sys.argv[1:]
    if not where.startswith("http"):
        where = StdioServerParameters(command=where, args=rest, env=dict(os.environ))
    async with Client(where, mode=mode) as client:
        tools = (await client.list_tools()).tools
        called = await client.call_tool("test_simple_text", {})
        echoed = await client.call_tool("echo", {"word": "hi"})
        prompt = await client.get_prompt("test_simple_prompt")
        resource = await client.read_resource("test://static-text")
        said = {
            "tools": [tool.name for tool in tools],
            "text": called.content[0].text,
            "echoed": echoed.structured_content,
            "prompt": prompt.messages[0].content.text,
            "resource": resource.contents[0].text,
            "version": client.protocol_version,
            "client": "Python SDK " + version("mcp"),
        }
        print(json.dumps(said))


asyncio.run(main())
