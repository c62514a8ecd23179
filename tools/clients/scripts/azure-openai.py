from openai_checks import *

# recipe
from openai import AzureOpenAI

client = AzureOpenAI(azure_endpoint=ORIGIN, api_key=API_KEY, api_version="2024-10-21")
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
check_responses(AzureOpenAI(azure_endpoint=ORIGIN, api_key=API_KEY, api_version="2025-04-01-preview"))
