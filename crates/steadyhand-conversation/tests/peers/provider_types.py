"""Lets the types of the providers' own SDKs judge messages: for each {provider, request} null or what does not fit."""

import collections.abc
import json
import signal
import sys
import types
import typing

signal.alarm(120)


def fits(value, hint, place):
    """What of a value does not fit a type hint; None if all of it does. Unknown keys do not fit."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return fits(value, typing.get_args(hint)[0], place)
    if origin in (typing.Union, types.UnionType):
        faults = [fits(value, one, place) for one in typing.get_args(hint)]
        if None in faults:
            return None
        # The choice that gets the furthest says it best.
        return max(faults, key=lambda fault: len(fault.split(":")[0]))
    if origin is typing.Literal:
        return None if value in typing.get_args(hint) else f"{place}: {value!r} is not in {hint}"
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        if not isinstance(value, list):
            return f"{place}: no list"
        (inner,) = typing.get_args(hint)
        return next((f for i, one in enumerate(value) if (f := fits(one, inner, f"{place}/{i}"))), None)
    if origin in (dict, collections.abc.Mapping):
        return None if isinstance(value, dict) else f"{place}: no object"
    if hint is type(None) or hint is None:
        return None if value is None else f"{place}: not null"
    if hint in (object, typing.Any):
        return None
    if hasattr(hint, "__required_keys__"):
        if not isinstance(value, dict):
            return f"{place}: no object"
        fields = typing.get_type_hints(hint)
        for key in hint.__required_keys__ - value.keys():
            return f"{place}: {key} is missing"
        for key, one in value.items():
            if key not in fields:
                return f"{place}/{key}: unknown"
            if fault := fits(one, fields[key], f"{place}/{key}"):
                return fault
        return None
    if isinstance(hint, type):
        is_other = isinstance(value, bool) and hint is not bool
        return None if isinstance(value, hint) and not is_other else f"{place}: no {hint.__name__}"
    return None


def of_type(key, hint):
    def judge(request):
        return next((f for i, one in enumerate(request[key]) if (f := fits(one, hint, f"/{i}"))), None)

    return judge


def of_model(key, model):
    def judge(request):
        try:
            for one in request[key]:
                model.model_validate(one)
        except Exception as refusal:
            return str(refusal)
        return None

    return judge


def anthropic():
    from anthropic.types import MessageParam

    return of_type("messages", MessageParam)


def openai():
    from openai.types.chat import ChatCompletionMessageParam

    return of_type("messages", ChatCompletionMessageParam)


def responses():
    from openai.types.responses import ResponseInputItemParam

    return of_type("input", ResponseInputItemParam)


def ollama():
    from ollama import Message

    return of_model("messages", Message)


def gemini():
    from google.genai.types import Content

    return of_model("contents", Content)


def converse():
    import botocore.session
    from botocore.validate import ParamValidator

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape

    def judge(request):
        report = ParamValidator().validate({"modelId": "m", **request}, shape)
        return report.generate_report() if report.has_errors() else None

    return judge


makers = {
    "anthropic": anthropic,
    "openai": openai,
    "openai-responses": responses,
    "ollama": ollama,
    "gemini": gemini,
    "bedrock-converse": converse,
}
judges = {}
verdicts = []
for one in json.load(sys.stdin):
    provider = one["provider"]
    if provider not in judges:
        judges[provider] = makers[provider]()
    verdicts.append(judges[provider](one["request"]))
json.dump(verdicts, sys.stdout)
