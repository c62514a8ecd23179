from openai_checks import *

# recipe
from databricks.sdk import WorkspaceClient
from databricks_openai import DatabricksOpenAI

client = DatabricksOpenAI(workspace_client=WorkspaceClient(host=ORIGIN, token=API_KEY))
# end of recipe


@check("chat")
def _():
    # recipe
    reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}])
    print(reply.choices[0].message.content)
    # end of recipe
    equal(reply.choices[0].message.content, SENTENCE)


check_chat(client)
check_embeddings(client)
check_responses(client)
