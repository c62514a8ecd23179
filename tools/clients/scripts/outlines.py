from checks import *
import openai
import outlines
from pydantic import BaseModel

model = outlines.from_openai(openai.OpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0), MODEL)


class City(BaseModel):
    name: str


@check("chat")
def _():
    equal(model("Hello"), SENTENCE)


@check("stream")
def _():
    equal("".join(model.stream("Hello")), SENTENCE)


@check("structured output")
def _():
    assert City.model_validate_json(model("Name a city.", City)).name


@check("errors")
def _():
    raises_text(lambda: model(FAILING), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: list(model.stream(BROKEN)), BREAKDOWN)
