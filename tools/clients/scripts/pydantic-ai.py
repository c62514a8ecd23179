from checks import *
from pydantic_ai import Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai_checks import ask_with_tools, check_model, stream

# recipe
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=API_KEY))
# end of recipe
responses = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=API_KEY))


@check("chat")
def _():
    # recipe
    print(Agent(model).run_sync("Hello").output)
    # end of recipe
    equal(Agent(model).run_sync("Hello").output, SENTENCE)


check_model(model)


@check("embeddings")
def _():
    embedder = Embedder(OpenAIEmbeddingModel(MODEL, provider=OpenAIProvider(base_url=BASE_URL, api_key=API_KEY)))
    equal(len(embedder.embed_documents_sync(["a", "b"]).embeddings), 2)


@check("responses")
def _():
    equal(Agent(responses).run_sync("Hello").output, SENTENCE)


@check("streamed responses")
async def _():
    equal((await stream(Agent(responses), "Hello"))[0], SENTENCE)


@check("responses with tools")
def _():
    ask_with_tools(responses)
