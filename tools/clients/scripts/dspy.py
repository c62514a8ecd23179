from checks import *
import dspy

lm = dspy.LM(f"openai/{MODEL}", api_base=BASE_URL, api_key=API_KEY, cache=False, num_retries=0)
dspy.configure(lm=lm)


@check("chat")
def _():
    equal(lm("Hello")[0], SENTENCE)


@check("structured output")
def _():
    with dspy.context(adapter=dspy.JSONAdapter()):
        assert dspy.Predict("question -> city")(question='fake:text(say={"city": "Rome"})').city


@check("tools")
def _():
    reply = lm(messages=user(TOOLS), tools=[WEATHER_TOOL])[0]
    contains(reply["tool_calls"][0].function.arguments, "Rome")


@check("errors")
def _():
    raises_text(lambda: lm(FAILING), FAILURE)


@check("embeddings")
def _():
    embedder = dspy.Embedder(f"openai/{MODEL}", api_base=BASE_URL, api_key=API_KEY, caching=False)
    equal(len(embedder(["a", "b"])), 2)


@check("responses")
def _():
    own = lm.copy(model_type="responses")
    contains(own("Hello")[0], SENTENCE)
