from langchain_checks import *
from langchain_azure_ai.chat_models import AzureAIOpenAIApiChatModel
from langchain_azure_ai.chat_models.inference import AzureAIChatCompletionsModel
from langchain_azure_ai.embeddings.inference import AzureAIEmbeddingsModel

llm = AzureAIChatCompletionsModel(endpoint=BASE_URL, credential=API_KEY, model=MODEL)


@check("chat")
def _():
    equal(llm.invoke("Hello").content, SENTENCE)


@check("usage in streams")
def _():
    chunks = llm.stream("Hello", model_extras={"stream_options": {"include_usage": True}})
    assert [chunk for chunk in chunks if chunk.usage_metadata]


check_chat(llm, breakdown=())  # the SDK has no place for a message in a stream
check_structured_output(llm, "json_schema", "function_calling")
check_embeddings(AzureAIEmbeddingsModel(endpoint=BASE_URL, credential=API_KEY, model=MODEL))
check_responses(AzureAIOpenAIApiChatModel(endpoint=f"{ORIGIN}/openai/v1", credential=API_KEY, model=MODEL))
