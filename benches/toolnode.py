"""The same tool through LangGraph's ToolNode: CPU microseconds per call, one JSON line."""

import asyncio
import json
import statistics
import time

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

ROUNDS, CALLS, BATCHES, BATCH = 7, 200, 3, 100


@tool
async def sum(a: int, b: int) -> int:
    """Adds two numbers"""
    return a + b


def asking(count):
    calls = [{"name": "sum", "args": {"a": 1, "b": 2}, "id": f"call_{i}", "type": "tool_call"} for i in range(count)]
    return {"messages": [AIMessage(content="", tool_calls=calls)]}


async def cpu_us(node, count, times):
    state, config = asking(count), {"configurable": {"__pregel_runtime": Runtime()}}
    began = time.process_time()
    for _ in range(times):
        answer = await node.ainvoke(state, config)
    assert len(answer["messages"]) == count and answer["messages"][0].content == "3"
    return (time.process_time() - began) / times * 1e6


async def main():
    node = ToolNode([sum])
    await cpu_us(node, 1, 50)
    one = [await cpu_us(node, 1, CALLS) for _ in range(ROUNDS)]
    many = [await cpu_us(node, BATCH, BATCHES) for _ in range(ROUNDS)]
    figures = [
        {"name": "LangGraph ToolNode", "us_min": min(one), "us_median": statistics.median(one)},
        {"name": "LangGraph ToolNode, batch of 100", "us_min": min(many), "us_median": statistics.median(many)},
    ]
    print(json.dumps(figures))


asyncio.run(main())
