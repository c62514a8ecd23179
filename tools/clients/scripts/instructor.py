from checks import *

# recipe
import instructor
from openai import OpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str


client = instructor.from_openai(OpenAI(base_url=BASE_URL, api_key=API_KEY))
# end of recipe


def ask(mode, **more):
    own = instructor.from_openai(OpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0), mode=mode)
    return own.chat.completions.create(
        model=MODEL, messages=user("Name a city."), response_model=City, max_retries=0, **more
    )


@check("tools")
def _():
    # recipe
    city = client.chat.completions.create(model=MODEL, messages=user("Name a city."), response_model=City)
    print(city.name)
    # end of recipe
    assert city.name


@check("streamed tools")
def _():
    cities = client.chat.completions.create_partial(model=MODEL, messages=user("Name a city."), response_model=City)
    assert list(cities)[-1].name


@check("structured output")
def _():
    assert ask(instructor.Mode.JSON_SCHEMA).name
    assert ask(instructor.Mode.TOOLS_STRICT).name


@check("errors")
def _():
    raises_text(
        lambda: client.chat.completions.create(model=MODEL, messages=user(FAILING), response_model=City, max_retries=0),
        FAILURE,
    )


@check("responses with tools")
def _():
    own = instructor.from_openai(OpenAI(base_url=BASE_URL, api_key=API_KEY), mode=instructor.Mode.RESPONSES_TOOLS)
    assert own.responses.create(model=MODEL, input="Name a city.", response_model=City).name
