from langchain_checks import *
from databricks_langchain import ChatDatabricks, DatabricksEmbeddings

llm = ChatDatabricks(model=MODEL, max_retries=0)


@check("chat")
def _():
    equal(llm.invoke("Hello").content, SENTENCE)


@check("usage in streams")
def _():
    assert [chunk for chunk in llm.stream("Hello", stream_usage=True) if chunk.usage_metadata]


@check("structured output")
def _():
    for method in ("function_calling", "json_schema", "json_mode"):
        found = llm.with_structured_output(City, method=method, include_raw=True).invoke("Name a city in JSON.")
        assert found["parsed"] or method == "json_mode", f"{method}: {found['parsing_error']}"


check_chat(llm)
check_embeddings(DatabricksEmbeddings(endpoint=MODEL))
check_responses(ChatDatabricks(model=MODEL, use_responses_api=True, max_retries=0))
