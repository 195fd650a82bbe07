"""Lets Mistral's own validator judge requests: a list in, for each null or its words out."""

import json
import signal
import sys

from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion

signal.alarm(120)
validator = get_validator(TokenizerVersion.v11, ValidationMode.serving)


def judge(request):
    try:
        validator.validate_request(ChatCompletionRequest.model_validate(request))
    except Exception as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return None


json.dump([judge(request) for request in json.load(sys.stdin)], sys.stdout)
