from checks import *
from guidance import assistant, gen, json as gen_json, models, user as say


def ask(text, wanted):
    lm = models.OpenAI(MODEL, api_key=API_KEY, base_url=BASE_URL, echo=False, max_retries=0)
    with say():
        lm += text
    with assistant():
        lm += wanted
    return lm["answer"]


@check("chat")
def _():
    equal(ask("Hello", gen("answer")), SENTENCE)


@check("structured output")
def _():
    contains(ask("Name a city.", gen_json("answer", schema=WEATHER_SCHEMA)), "city")


@check("errors")
def _():
    raises_text(lambda: ask(FAILING, gen("answer")), FAILURE)
