"""Calls a server through the client that openapi-python-client made. Arguments: its address, a token."""

import importlib
import inspect
import pkgutil
import sys
from http import HTTPStatus
from types import ModuleType

import generated.api
from generated import AuthenticatedClient, Client
from generated.api.access import get_caller
from generated.api.calls import create_batch, create_call, export_calls, get_call
from generated.api.health import get_readiness
from generated.api.tools import get_tool
from generated.models import (
    ApiError,
    BatchOutcomes,
    BatchRequest,
    CallRecord,
    CallRequest,
    FailureCode,
    FlatOutcome,
    Outcome,
    OutcomeStatus,
    OutcomeView,
    Readiness,
    Tool,
)

# Its answer has no end.
ENDLESS = ["stream_events"]


def routes_without_arguments() -> list[ModuleType]:
    """The modules of all GET routes that can be asked without saying anything."""
    found = []
    for module in pkgutil.walk_packages(generated.api.__path__, "generated.api."):
        loaded = importlib.import_module(module.name)
        if module.ispkg or module.name.rsplit(".", 1)[1] in ENDLESS:
            continue
        parameters = inspect.signature(loaded.sync_detailed).parameters.values()
        wanted = [it.name for it in parameters if it.default is inspect.Parameter.empty and it.name != "client"]
        if not wanted and loaded._get_kwargs()["method"] == "get":
            found.append(loaded)
    return found


def main(address: str, token: str) -> None:
    client = AuthenticatedClient(base_url=address, token=token)

    call = CallRequest(name="weather", args={"city": "Oslo"}, id="py-1")
    called = create_call.sync_detailed(client=client, body=call, steadyhand_caller="python")
    outcome = called.parsed
    assert isinstance(outcome, Outcome), outcome
    assert outcome.status is OutcomeStatus.SUCCESS
    assert called.headers["steadyhand-outcome"] == "success"

    failed = create_call.sync(client=client, body=CallRequest(name="weather"))
    assert isinstance(failed, Outcome) and failed.error, failed
    assert failed.error.code is FailureCode.VALIDATION_ERROR

    flat = create_call.sync(client=client, body=CallRequest(name="echo"), view=OutcomeView.FLAT)
    assert isinstance(flat, FlatOutcome) and flat.success, flat

    nameless = CallRequest(name="")
    batch = create_batch.sync(client=client, body=BatchRequest(calls=[CallRequest(name="echo"), nameless]))
    assert isinstance(batch, BatchOutcomes), batch
    echoed, refused = batch.outcomes
    assert isinstance(echoed, Outcome) and echoed.status is OutcomeStatus.SUCCESS, echoed
    assert isinstance(refused, Outcome) and refused.error, refused
    assert refused.error.code is FailureCode.VALIDATION_ERROR

    tool = get_tool.sync("weather", client=client)
    assert isinstance(tool, Tool) and tool.name == "weather", tool
    missing = get_tool.sync("wether", client=client)
    assert isinstance(missing, ApiError) and missing.error.code == "no_such_tool", missing

    kept = get_call.sync("py-1", client=client)
    assert isinstance(kept, CallRecord) and kept.caller == "python", kept
    lines = export_calls.sync(client=client, tool="weather")
    assert isinstance(lines, str) and "py-1" in lines, lines

    stranger = Client(base_url=address)
    unknown = get_caller.sync_detailed(client=stranger)
    assert unknown.status_code == HTTPStatus.UNAUTHORIZED and isinstance(unknown.parsed, ApiError), unknown
    assert isinstance(get_readiness.sync(client=stranger), Readiness)

    routes = routes_without_arguments()
    for route in routes:
        response = route.sync_detailed(client=client)
        if response.status_code != HTTPStatus.NOT_FOUND:
            assert response.status_code == HTTPStatus.OK, (route, response)
        assert response.parsed is not None, (route, response)
    print(f"{len(routes)} routes asked without arguments, all good")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
