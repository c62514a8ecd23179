from llama_index_checks import *
from llama_index.embeddings.openai_like import OpenAILikeEmbedding

# recipe
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(api_base=BASE_URL, api_key=API_KEY, model=MODEL, is_chat_model=True, is_function_calling_model=True)
# end of recipe


@check("chat")
def _():
    # recipe
    print(llm.complete("Hello"))
    # end of recipe
    equal(llm.chat([ChatMessage("Hello")]).message.content, SENTENCE)


@check("tools")
def _():
    contains(llm.predict_and_call([tool], TOOLS), RESULT)
    ask_with_tools(llm)


check_chat(llm)
check_structured_output(llm)
check_embeddings(OpenAILikeEmbedding(api_base=BASE_URL, api_key=API_KEY, model_name=MODEL))
