"""Databricks' client for OpenAI's protocols, in front of any provider that dragoman serves.

databricks-openai pins older versions of its dependencies, so install it into its own environment:

    dragoman serve --config examples/fakes.yaml          # in one terminal, with the fakes that the file names
    pip install databricks-openai                        # in another one, in a fresh environment
    python examples/databricks_openai_client.py http://127.0.0.1:8080 fake-mindie

The client sends chat to HOST/serving-endpoints/chat/completions and Responses to HOST/serving-endpoints/responses. The
token is the proxy's key, or any word if the proxy has no keys.
"""

from __future__ import annotations

import os
import sys

from databricks.sdk import WorkspaceClient
from databricks_openai import DatabricksOpenAI
from openai import BadRequestError

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def main(host: str, model: str) -> None:
    workspace = WorkspaceClient(host=host, token=os.environ.get("DRAGOMAN_KEY", "any"))
    client = DatabricksOpenAI(workspace_client=workspace)
    hello = [{"role": "user", "content": "Say hello."}]

    reply = client.chat.completions.create(model=model, messages=hello)
    print("whole:   ", reply.choices[0].message.content)

    print("streamed: ", end="")
    for chunk in client.chat.completions.create(model=model, messages=hello, stream=True):
        print("".join(choice.delta.content or "" for choice in chunk.choices), end="", flush=True)
    print()

    question = [{"role": "user", "content": "What is the weather in Rome? fake:tools"}]  # makes a fake call the tool
    answer = client.chat.completions.create(model=model, messages=question, tools=[WEATHER])
    for call in answer.choices[0].message.tool_calls or ():
        print("called:  ", call.function.name, call.function.arguments)

    response = client.responses.create(model=model, input="Say hello.", instructions="Be brief.")
    print("response:", response.output_text, response.usage)

    try:
        client.chat.completions.create(model=model, messages=hello, temperature=3)
    except BadRequestError as error:
        print("refused: ", error.status_code, error.body)


if __name__ == "__main__":
    main(*sys.argv[1:])
