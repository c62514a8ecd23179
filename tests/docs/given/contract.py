import openai
import pytest  # noqa: F401
from openai import APIError as MyError  # noqa: F401


def my_application(base_url):
    client = openai.OpenAI(base_url=base_url, api_key="any", max_retries=0)
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
