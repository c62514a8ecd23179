from openai_checks import *
from databricks.sdk import WorkspaceClient
from databricks.sdk.service.serving import ChatMessage, ChatMessageRole

workspace = WorkspaceClient(host=ORIGIN, token=API_KEY)
client = workspace.serving_endpoints.get_open_ai_client()


def query(text):
    return workspace.serving_endpoints.query(MODEL, messages=[ChatMessage(text, ChatMessageRole.USER)])


@check("chat")
def _():
    equal(query("Hello").choices[0].message.content, SENTENCE)


@check("errors")
def _():
    raises_text(lambda: query(FAILING), FAILURE)


@check("embeddings")
def _():
    equal(len(workspace.serving_endpoints.query(MODEL, input=["a", "b"]).data), 2)


check_streams(client)
check_tools(client)
check_structured_output(client)
