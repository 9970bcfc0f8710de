"""The description of the API for machines, made from the shapes that the service itself reads and writes."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from fliptron.service.history import Past
from fliptron.service.live import Live, Noise, Source
from fliptron.service.messages import (
    MOST_BATCH,
    Answer,
    Ask,
    AskMany,
    Error,
    Feedback,
    FeedbackMany,
    ModelShown,
    Quarantine,
    Received,
)

_SHAPES = (
    Ask,
    AskMany,
    Answer,
    Feedback,
    FeedbackMany,
    Received,
    Quarantine,
    ModelShown,
    Noise,
    Source,
    Live,
    Past,
    Error,
)
_REFUSALS = {
    400: "The body is not JSON.",
    401: "No token, or an unknown one.",
    403: "The token does not allow it.",
    404: "No such model or event.",
    409: "There is nothing to export yet.",
    413: "The body is too long.",
    422: "The body is JSON, but not what is expected.",
    503: "The journal is behind or cannot be written; try again after Retry-After.",
    507: "The disk is full; nothing was kept.",
}


def openapi(models: list[str]) -> dict[str, Any]:
    """An OpenAPI 3.1 description.

    Parameters
    ----------
    models
        The names of the models that are served.
    """
    schemas = msgspec.json.schema_components(_SHAPES, ref_template="#/components/schemas/{name}")[1]
    for shape in _SHAPES:
        schemas[shape.__name__]["additionalProperties"] = False
    schemas["Ask"]["properties"]["features"]["anyOf"][0]["minItems"] = 1
    schemas["AskMany"]["oneOf"] = [{"required": ["decisions"]}, {"required": ["x"]}]
    for many, name in (("AskMany", "decisions"), ("FeedbackMany", "feedbacks")):
        field = schemas[many]["properties"][name]
        items = field["anyOf"][0] if "anyOf" in field else field
        items.update(minItems=1, maxItems=MOST_BATCH)
    model = {"name": "model", "in": "path", "required": True, "schema": {"type": "string", "enum": models}}

    def call(what: str, answer: Any, body: str | None = None, *, media: str = "application/json", **more: Any) -> Any:
        refusals = (401, 403, 404, *((400, 413, 422, 503, 507) if body else ()), *more.pop("also", ()))
        found: dict[str, Any] = {
            "summary": what,
            "parameters": [model],
            "responses": {
                "200": {"description": "Done.", "content": {media: {"schema": answer}}},
                **{str(status): _refusal(status) for status in sorted(refusals)},
            },
        }
        if body is not None:
            found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _shape(body)}}}
        return found | more

    def listed(shape: str) -> Any:
        return {"type": "array", "items": _shape(shape)}

    top = "/v1/models/{model}"
    binary = {"type": "string", "format": "binary"}
    paths: dict[str, Any] = {
        f"{top}/decide": {"post": call("Which label to play.", _shape("Answer"), "Ask")},
        f"{top}/decisions": {"post": call("The same for many.", listed("Answer"), "AskMany")},
        f"{top}/feedback": {"post": call("What came back.", _shape("Received"), "Feedback")},
        f"{top}/feedbacks": {"post": call("The same for many.", listed("Received"), "FeedbackMany")},
        f"{top}/estimate": {"get": call("How noisy the bits are, and the true accuracy.", _shape("Noise"))},
        f"{top}/live": {
            "get": call("Every second, as server-sent events, a Live.", {"type": "string"}, media="text/event-stream")
        },
        f"{top}/history": {"get": call("How the true accuracy went.", _shape("Past"))},
        f"{top}/sources": {
            "get": call("Sources in quarantine, and the most suspicious.", listed("Source")),
            "post": call("Put a source into quarantine, or let it out.", listed("Source"), "Quarantine"),
        },
        f"{top}/export.parquet": {
            "get": call("All rounds whose bit is known.", binary, media="application/vnd.apache.parquet", also=(409,))
        },
        f"{top}/model.npz": {"get": call("The model as it is now.", binary, media="application/octet-stream")},
        "/v1/models": {"get": call("The models.", listed("ModelShown"), parameters=[])},
        "/metrics": {"get": call("Numbers for Prometheus.", {"type": "string"}, media="text/plain", parameters=[])},
        "/healthz": {"get": _open("Whether the process lives.")},
        "/readyz": {"get": _open("Whether it decides.")},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fliptron", "version": version("fliptron")},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _shape(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _refusal(status: int) -> dict[str, Any]:
    return {"description": _REFUSALS[status], "content": {"application/json": {"schema": _shape("Error")}}}


def _open(what: str) -> dict[str, Any]:
    answer = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
    done = {"description": "Yes.", "content": {"application/json": {"schema": answer}}}
    return {"summary": what, "security": [], "responses": {"200": done, "503": _refusal(503)}}
