"""Hands exported messages to a vendor's own library: check.py openai|anthropic|gemini FILE."""

import json
import sys
from collections.abc import Iterable, Mapping

from pydantic import TypeAdapter


def consume(value):
    """Reads lists that the libraries declare as iterables: they are validated only while they are read."""
    if isinstance(value, Mapping):
        for member in value.values():
            consume(member)
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for item in value:
            consume(item)


form, path = sys.argv[1:]
messages = json.load(open(path, encoding="utf-8"))
assert messages, "there are no messages"
if form == "openai":
    from openai.types.chat import ChatCompletionMessageParam

    adapter = TypeAdapter(list[ChatCompletionMessageParam])
    consume(adapter.validate_python(messages))
elif form == "anthropic":
    from anthropic.types import MessageParam

    adapter = TypeAdapter(list[MessageParam])
    consume(adapter.validate_python(messages))
else:
    from google.genai import types

    for message in messages:
        types.Content.model_validate(message)
print("accepted")
