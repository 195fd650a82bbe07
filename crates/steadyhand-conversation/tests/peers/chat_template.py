"""Renders conversations through a model's chat template, as Hugging Face's transformers do: template and list in, prompts out."""

import json
import signal
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

signal.alarm(120)
given = json.load(sys.stdin)
environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
template = environment.from_string(given["template"])
json.dump([template.render(**one, add_generation_prompt=True) for one in given["conversations"]], sys.stdout)
