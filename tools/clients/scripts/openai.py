from openai_checks import *

# recipe
from openai import OpenAI

client = OpenAI(base_url=BASE_URL, api_key=API_KEY)
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
