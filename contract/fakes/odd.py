"""Error forms that were seen in the field, each as it came."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from .answers import Ask, Json
from .errors import Problem, azure, databricks, json_reply, mindie, openai, text_reply
from .wire import Reply

__all__ = ["ODD", "Odd"]


@dataclass(frozen=True, slots=True)
class Odd:
    """One error form as it was seen: `param` is the parameter that the error blames, where it blames one."""

    dialect: str
    about: str
    make: Callable[[str], Reply]
    param: str = ""

    def __call__(self, ask: Ask) -> Reply:
        return self.make(str(ask.args.get("param", "")))


def _blame(param: str) -> Json:
    said = {"msg": "Extra inputs are not permitted", "input": "fake", "url": "https://errors.pydantic.dev/2/v/extra"}
    return {"type": "extra_forbidden", "loc": ["body", param], **said}


def _extra_refused(param: str) -> str:
    return (
        f"Extra parameters ['{param}'] are not allowed when extra-parameters is not set or set to be 'error'. "
        "Set extra-parameters to 'pass-through' to pass to the model."
    )


def _external(param: str) -> Json:
    inner = {"error_code": "BAD_REQUEST", "message": f"{param}: Extra inputs are not permitted"}
    return {"error": "Received error from databricks-model-serving", "external_model_message": inner}


_FILTER = {"code": "content_filter", "message": "The response was filtered", "param": "messages", "status": 400}
_BAD = {"x-ms-error-code": "BadRequest"}
_PAGE = "<html><head><title>502 Bad Gateway</title></head><body><pre>upstream connect error</pre></body></html>"

ODD: dict[str, Odd] = {
    "azure-422-a": Odd(
        "azure",
        "422 with an object `detail`: loc and value",
        lambda param: azure(Problem(422, f"{param} is not supported", (param,), "fake"), "documented"),
        param="user",
    ),
    "azure-422-b": Odd(
        "azure",
        "422 with an object `detail`: loc and input, no `error`",
        lambda param: azure(Problem(422, "", (param,), "fake"), "actual"),
        param="user",
    ),
    "azure-422-c": Odd(
        "azure",
        "422 with a list `detail` of loc and input",
        lambda param: json_reply(
            422,
            {
                "status": 422,
                "code": "parameter_not_supported",
                "detail": [{"loc": ["body", param], "input": "fake"}],
                "message": "One of the parameters contain invalid values.",
            },
            {"x-ms-error-code": "parameter_not_supported"},
        ),
        param="user",
    ),
    "azure-422-d": Odd(
        "azure", "422 as pydantic writes it", lambda param: json_reply(422, {"detail": [_blame(param)]}), param="user"
    ),
    "azure-422-e": Odd(
        "azure",
        "422 with a string `detail`",
        lambda param: json_reply(422, {"detail": _extra_refused(param)}, {"x-ms-error-code": "invalid_extra"}),
        param="user",
    ),
    "azure-422-f": Odd(
        "azure",
        "422 with the detail as JSON text in `error.message`",
        lambda param: json_reply(
            422,
            {"error": {"code": "Invalid input", "message": json.dumps({"detail": [_blame(param)]}), "status": 422}},
        ),
        param="user",
    ),
    "azure-400-extra": Odd(
        "azure",
        "400 that names the extra parameter in a string `detail`",
        lambda param: json_reply(400, {"detail": _extra_refused(param)}, _BAD),
        param="user",
    ),
    "azure-400-header": Odd(
        "azure",
        "400 about the word in the header extra-parameters",
        lambda param: json_reply(
            400,
            {
                "detail": f"Unexpected EXTRA_PARAMETERS option {param}, "
                "expected options are ['error', 'drop', 'pass-through']"
            },
            _BAD,
        ),
        param="ignore",
    ),
    "azure-400-numeric": Odd(
        "azure",
        "400 with a number as `code`",
        lambda param: json_reply(
            400,
            {
                "requestid": "fake",
                "code": 400,
                "message": f"Validation error at #/{param}: Extra inputs are not permitted",
            },
        ),
        param="user",
    ),
    "azure-content-filter": Odd(
        "azure",
        "400 of the content filter, flat",
        lambda _: json_reply(400, {**_FILTER, "type": None}, {"x-ms-error-code": "content_filter"}),
    ),
    "azure-content-filter-nested": Odd(
        "azure",
        "400 of the content filter, inside `error`",
        lambda _: json_reply(400, {"error": {**_FILTER, "type": None, "param": "prompt"}}),
    ),
    "azure-generic": Odd(
        "azure",
        "500 in the general Azure form, with details and innererror",
        lambda _: json_reply(
            500,
            {
                "error": {
                    "code": "InternalServerError",
                    "message": "The fake service failed",
                    "target": "model",
                    "details": [{"code": "Timeout", "message": "The model did not answer"}],
                    "innererror": {"code": "ModelTimeout"},
                }
            },
            {"x-ms-error-code": "InternalServerError"},
        ),
    ),
    "databricks-external": Odd(
        "databricks", "400 of an external model, wrapped", lambda param: json_reply(400, _external(param)), param="user"
    ),
    "databricks-text": Odd(
        "databricks",
        "500 as plain text `CODE: message`",
        lambda _: text_reply(500, "INTERNAL_ERROR: the fake endpoint failed"),
    ),
    "databricks-html": Odd(
        "databricks",
        "502 as an HTML page",
        lambda _: text_reply(502, _PAGE, "text/html; charset=utf-8"),
    ),
    "databricks-empty": Odd("databricks", "503 with an empty body", lambda _: Reply(503, {}, (b"",))),
    "databricks-unknown-field": Odd(
        "databricks",
        "400 about a field it does not know",
        lambda param: databricks(
            Problem(400, f'Bad request: json: unknown field "{param}"\n', code="BAD_REQUEST"), "actual"
        ),
        param="user",
    ),
    "mindie-422": Odd(
        "mindie",
        "422 Input Validation Error",
        lambda param: mindie(Problem(422, f"Parameter {param} must be in (0.0,1.0], got 0."), "actual"),
        param="top_p",
    ),
    "mindie-422-type": Odd(
        "mindie",
        "422 of MindIE 1.0.0: key `type` instead of `error_type`",
        lambda param: json_reply(422, {"error": f"Parameter {param} is wrong.", "type": "Input Validation Error"}),
        param="top_p",
    ),
    "mindie-424": Odd(
        "mindie",
        "424 Generation Error",
        lambda _: mindie(Problem(424, "Failed to enqueue the inference request."), "actual"),
    ),
    "mindie-500-text": Odd(
        "mindie",
        "500 whose body is text although the content type says JSON",
        lambda _: text_reply(500, "Server internal error", "application/json"),
    ),
    "mindie-404-empty": Odd("mindie", "404 with an empty body", lambda _: Reply(404, {}, (b"",))),
    "mindie-413": Odd(
        "mindie",
        "413 with nothing but `message`",
        lambda _: mindie(Problem(413, "Request body too large. Maximum allowed size is 40MB."), "actual"),
    ),
    "openai-error": Odd(
        "openai",
        "400 with all four keys of `error`",
        lambda param: openai(Problem(400, f"Invalid value for '{param}'.", (param,), code="invalid_value"), "actual"),
        param="temperature",
    ),
    "openai-string-error": Odd(
        "openai",
        "400 with a string as `error`",
        lambda param: json_reply(400, {"error": f"{param} is wrong"}),
        param="user",
    ),
}
