from checks import *
from pydantic_ai_checks import check_model

# recipe
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

model = AnthropicModel(MODEL, provider=AnthropicProvider(base_url=BASE_URL, api_key=API_KEY))
# end of recipe


@check("chat")
def _():
    # recipe
    print(Agent(model).run_sync("Hello").output)
    # end of recipe
    equal(Agent(model).run_sync("Hello").output, SENTENCE)


check_model(model)
