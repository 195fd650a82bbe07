"""Goes on with a history whose call was lost. Argument: the base URL."""

import sys

import openai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-5", base_url=sys.argv[1], api_key="any", max_retries=0)
history = [HumanMessage("What is the weather in Rome?"), ToolMessage("18 C", tool_call_id="call_A"), HumanMessage("Hello?")]
try:
    print(model.invoke(history).text)
except openai.APIStatusError as error:
    print(error.status_code, error.body["message"])
