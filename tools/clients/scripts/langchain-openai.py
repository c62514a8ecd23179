from langchain_checks import *
from langchain_openai import OpenAIEmbeddings

# recipe
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL)
# end of recipe


@check("chat")
def _():
    # recipe
    print(llm.invoke("Hello").content)
    # end of recipe
    equal(llm.invoke("Hello").content, SENTENCE)


@check("usage in streams")
def _():
    usage = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL, stream_usage=True)
    assert [chunk for chunk in usage.stream("Hello") if chunk.usage_metadata]


check_chat(llm)
check_structured_output(llm, "json_schema", "function_calling")
check_embeddings(OpenAIEmbeddings(base_url=BASE_URL, api_key=API_KEY, model=MODEL))
check_responses(ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL, use_responses_api=True, max_retries=0))
