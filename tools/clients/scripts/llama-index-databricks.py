from llama_index_checks import *
from llama_index.embeddings.databricks import DatabricksEmbedding
from llama_index.llms.databricks import Databricks

address = f"{ORIGIN}/serving-endpoints"
llm = Databricks(model=MODEL, api_key=API_KEY, api_base=address, is_function_calling_model=True)


@check("chat")
def _():
    equal(llm.chat([ChatMessage("Hello")]).message.content, SENTENCE)


@check("tools")
def _():
    contains(llm.predict_and_call([tool], TOOLS), RESULT)


check_chat(llm)
check_structured_output(llm)
check_embeddings(DatabricksEmbedding(model=MODEL, api_key=API_KEY, endpoint=address))
