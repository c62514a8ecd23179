from checks import *
from mlflow.deployments import get_deploy_client

client = get_deploy_client("databricks")


@check("chat")
def _():
    reply = client.predict(endpoint=MODEL, inputs={"messages": user("Hello")})
    equal(reply["choices"][0]["message"]["content"], SENTENCE)


@check("stream")
def _():
    chunks = client.predict_stream(endpoint=MODEL, inputs={"messages": user("Hello")})
    pieces = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    equal("".join(pieces), SENTENCE)


@check("tools")
def _():
    messages = user(TOOLS)
    reply = client.predict(endpoint=MODEL, inputs={"messages": messages, "tools": [WEATHER_TOOL]})
    first = reply["choices"][0]["message"]
    messages += [first, {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": RESULT}]
    second = client.predict(endpoint=MODEL, inputs={"messages": messages, "tools": [WEATHER_TOOL]})
    contains(second["choices"][0]["message"]["content"], RESULT)


@check("structured output")
def _():
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": WEATHER_SCHEMA}}
    reply = client.predict(endpoint=MODEL, inputs={"messages": user("Name a city."), "response_format": schema})
    contains(reply["choices"][0]["message"]["content"], "city")


@check("errors")
def _():
    raises_text(lambda: client.predict(endpoint=MODEL, inputs={"messages": user(FAILING)}), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: list(client.predict_stream(endpoint=MODEL, inputs={"messages": user(BROKEN)})), BREAKDOWN)


@check("embeddings")
def _():
    equal(len(client.predict(endpoint=MODEL, inputs={"input": ["a", "b"]})["data"]), 2)
