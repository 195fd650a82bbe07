"""The fields of a request that Anthropic's own SDK knows, as a list."""

import json
import signal
import sys
import typing

from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_params

signal.alarm(120)
sys.stdin.read()
known = [message_create_params.MessageCreateParamsBase, beta_params.MessageCreateParamsBase]
fields = {field for one in known for field in typing.get_type_hints(one)}
json.dump(sorted(fields), sys.stdout)
