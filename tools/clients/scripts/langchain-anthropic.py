from langchain_checks import *

# recipe
from langchain_anthropic import ChatAnthropic

llm = ChatAnthropic(base_url=BASE_URL, api_key=API_KEY, model=MODEL, max_tokens=1024)
# end of recipe


@check("chat")
def _():
    # recipe
    print(llm.invoke("Hello").content)
    # end of recipe
    equal(llm.invoke("Hello").content, SENTENCE)


@check("usage in streams")
def _():
    assert [chunk for chunk in llm.stream("Hello") if chunk.usage_metadata]


@check("token count")
def _():
    assert llm.get_num_tokens_from_messages([HumanMessage("Hello")])


once = ChatAnthropic(base_url=BASE_URL, api_key=API_KEY, model=MODEL, max_tokens=1024, max_retries=0)
check_chat(once)
check_structured_output(once, "json_schema", "function_calling")
