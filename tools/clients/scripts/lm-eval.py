import json
import os
from checks import *
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI

os.environ["OPENAI_API_KEY"] = API_KEY
SETTINGS = {"until": ["\n\n"], "max_gen_toks": 64, "temperature": 0, "do_sample": False}


def ask(kind, path, text, **more):
    model = kind(model=MODEL, base_url=BASE_URL + path, max_retries=1, tokenizer_backend=None, **more)
    return model.generate_until([Instance("generate_until", {}, (text, dict(SETTINGS)), 0)], disable_tqdm=True)[0]


@check("chat")
def _():
    equal(ask(LocalChatCompletion, "/chat/completions", JsonChatStr(json.dumps(user("Hello")))), SENTENCE)


@check("completions")
def _():
    equal(ask(LocalCompletionsAPI, "/completions", "Hello", tokenized_requests=False), SENTENCE)
