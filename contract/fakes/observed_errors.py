"""Error forms that real services send, each exactly as observed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.contract.json_types import JsonObject

from .answers import ModelRequest
from .errors import (
    Problem,
    build_json_reply,
    build_text_reply,
    write_azure_error,
    write_databricks_error,
    write_mindie_error,
    write_openai_error,
)
from .wire import Reply

__all__ = ["OBSERVED_ERRORS", "ObservedError"]


@dataclass(frozen=True, slots=True)
class ObservedError:
    """One observed error form. `param` is the parameter that the error names, empty if it names none."""

    dialect: str
    description: str
    build_reply: Callable[[str], Reply]
    param: str = ""

    def __call__(self, request: ModelRequest) -> Reply:
        return self.build_reply(str(request.args.get("param", "")))


def _build_pydantic_detail(param: str) -> JsonObject:
    message = {"msg": "Extra inputs are not permitted", "input": "fake", "url": "https://errors.pydantic.dev/2/v/extra"}
    return {"type": "extra_forbidden", "loc": ["body", param], **message}


def _build_extra_detail(param: str) -> str:
    return (
        f"Extra parameters ['{param}'] are not allowed when extra-parameters is not set or set to be 'error'. "
        "Set extra-parameters to 'pass-through' to pass to the model."
    )


def _build_external_error(param: str) -> JsonObject:
    inner = {"error_code": "BAD_REQUEST", "message": f"{param}: Extra inputs are not permitted"}
    return {"error": "Received error from databricks-model-serving", "external_model_message": inner}


_FILTER = {"code": "content_filter", "message": "The response was filtered", "param": "messages", "status": 400}
_BAD = {"x-ms-error-code": "BadRequest"}
_PAGE = "<html><head><title>502 Bad Gateway</title></head><body><pre>upstream connect error</pre></body></html>"

OBSERVED_ERRORS: dict[str, ObservedError] = {
    "azure-422-a": ObservedError(
        "azure",
        "422 with an object `detail`: loc and value",
        lambda param: write_azure_error(Problem(422, f"{param} is not supported", (param,), "fake"), "documented"),
        param="user",
    ),
    "azure-422-b": ObservedError(
        "azure",
        "422 with an object `detail`: loc and input, no `error`",
        lambda param: write_azure_error(Problem(422, "", (param,), "fake"), "actual"),
        param="user",
    ),
    "azure-422-c": ObservedError(
        "azure",
        "422 with a list `detail` of loc and input",
        lambda param: build_json_reply(
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
    "azure-422-d": ObservedError(
        "azure",
        "422 in pydantic's form",
        lambda param: build_json_reply(422, {"detail": [_build_pydantic_detail(param)]}),
        param="user",
    ),
    "azure-422-e": ObservedError(
        "azure",
        "422 with a string `detail`",
        lambda param: build_json_reply(
            422, {"detail": _build_extra_detail(param)}, {"x-ms-error-code": "invalid_extra"}
        ),
        param="user",
    ),
    "azure-422-f": ObservedError(
        "azure",
        "422 with the detail as JSON text in `error.message`",
        lambda param: build_json_reply(
            422,
            {
                "error": {
                    "code": "Invalid input",
                    "message": json.dumps({"detail": [_build_pydantic_detail(param)]}),
                    "status": 422,
                }
            },
        ),
        param="user",
    ),
    "azure-400-extra": ObservedError(
        "azure",
        "400 that names the extra parameter in a string `detail`",
        lambda param: build_json_reply(400, {"detail": _build_extra_detail(param)}, _BAD),
        param="user",
    ),
    "azure-400-header": ObservedError(
        "azure",
        "400 about the value of the header extra-parameters",
        lambda param: build_json_reply(
            400,
            {
                "detail": f"Unexpected EXTRA_PARAMETERS option {param}, "
                "expected options are ['error', 'drop', 'pass-through']"
            },
            _BAD,
        ),
        param="ignore",
    ),
    "azure-400-numeric": ObservedError(
        "azure",
        "400 with a number as `code`",
        lambda param: build_json_reply(
            400,
            {
                "requestid": "fake",
                "code": 400,
                "message": f"Validation error at #/{param}: Extra inputs are not permitted",
            },
        ),
        param="user",
    ),
    "azure-content-filter": ObservedError(
        "azure",
        "400 of the content filter, flat",
        lambda _: build_json_reply(400, {**_FILTER, "type": None}, {"x-ms-error-code": "content_filter"}),
    ),
    "azure-content-filter-nested": ObservedError(
        "azure",
        "400 of the content filter, in `error`",
        lambda _: build_json_reply(400, {"error": {**_FILTER, "type": None, "param": "prompt"}}),
    ),
    "azure-generic": ObservedError(
        "azure",
        "500 in Azure's general form, with details and innererror",
        lambda _: build_json_reply(
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
    "databricks-external": ObservedError(
        "databricks",
        "400 of an external model, wrapped",
        lambda param: build_json_reply(400, _build_external_error(param)),
        param="user",
    ),
    "databricks-text": ObservedError(
        "databricks",
        "500 as plain text `CODE: message`",
        lambda _: build_text_reply(500, "INTERNAL_ERROR: the fake endpoint failed"),
    ),
    "databricks-html": ObservedError(
        "databricks",
        "502 as an HTML page",
        lambda _: build_text_reply(502, _PAGE, "text/html; charset=utf-8"),
    ),
    "databricks-empty": ObservedError("databricks", "503 with an empty body", lambda _: Reply(503, {}, (b"",))),
    "databricks-unknown-field": ObservedError(
        "databricks",
        "400 about an unknown field",
        lambda param: write_databricks_error(
            Problem(400, f'Bad request: json: unknown field "{param}"\n', code="BAD_REQUEST"), "actual"
        ),
        param="user",
    ),
    "mindie-422": ObservedError(
        "mindie",
        "422 Input Validation Error",
        lambda param: write_mindie_error(Problem(422, f"Parameter {param} must be in (0.0,1.0], got 0."), "actual"),
        param="top_p",
    ),
    "mindie-422-type": ObservedError(
        "mindie",
        "422 of MindIE 1.0.0: key `type` instead of `error_type`",
        lambda param: build_json_reply(
            422, {"error": f"Parameter {param} is wrong.", "type": "Input Validation Error"}
        ),
        param="top_p",
    ),
    "mindie-424": ObservedError(
        "mindie",
        "424 Generation Error",
        lambda _: write_mindie_error(Problem(424, "Failed to enqueue the inference request."), "actual"),
    ),
    "mindie-500-text": ObservedError(
        "mindie",
        "500 with a text body and the content type of JSON",
        lambda _: build_text_reply(500, "Server internal error", "application/json"),
    ),
    "mindie-404-empty": ObservedError("mindie", "404 with an empty body", lambda _: Reply(404, {}, (b"",))),
    "mindie-413": ObservedError(
        "mindie",
        "413 with only `message`",
        lambda _: write_mindie_error(Problem(413, "Request body too large. Maximum allowed size is 40MB."), "actual"),
    ),
    "openai-error": ObservedError(
        "openai",
        "400 with all four keys of `error`",
        lambda param: write_openai_error(
            Problem(400, f"Invalid value for '{param}'.", (param,), code="invalid_value"), "actual"
        ),
        param="temperature",
    ),
    "openai-string-error": ObservedError(
        "openai",
        "400 with a string as `error`",
        lambda param: build_json_reply(400, {"error": f"{param} is wrong"}),
        param="user",
    ),
}
