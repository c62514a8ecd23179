from llama_index_checks import *
from llama_index.embeddings.azure_inference import AzureAIEmbeddingsModel
from llama_index.llms.azure_inference import AzureAICompletionsModel

llm = AzureAICompletionsModel(endpoint=BASE_URL, credential=API_KEY, model_name=MODEL)


@check("chat")
def _():
    equal(llm.chat([ChatMessage("Hello")]).message.content, SENTENCE)


@check("tools")
def _():
    ask_with_tools(llm)


check_chat(llm, breakdown=())  # the SDK has no place for a message in a stream
check_structured_output(llm, 'fake:text(say={"name": "Rome"})')
check_embeddings(AzureAIEmbeddingsModel(endpoint=BASE_URL, credential=API_KEY, model_name=MODEL))
