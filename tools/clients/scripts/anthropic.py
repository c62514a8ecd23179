from anthropic_checks import *
from checks import *

# recipe
from anthropic import Anthropic

client = Anthropic(base_url=BASE_URL, api_key=API_KEY)
# end of recipe


@check("chat")
def _():
    # recipe
    message = client.messages.create(model=MODEL, max_tokens=1024, messages=[{"role": "user", "content": "Hello"}])
    print(message.content[0].text)
    # end of recipe
    equal((message.content[0].text, message.stop_reason), (SENTENCE, "end_turn"))


twice = Anthropic(base_url=BASE_URL, api_key=API_KEY, max_retries=1)
check_messages(twice)
check_tools(twice)
check_errors(twice)
