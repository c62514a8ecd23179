import openai
import pytest  # noqa: F401


def ask(base_url):
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key="any", max_retries=0)
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
