"""A request that the official library sends again by itself, since its server is killed: killed.py ROOT DOOR. Prints the
conversation and the answer."""
import json
import sys

from openai import OpenAI

root, door = sys.argv[1:]
# As often as the next server takes to start.
client = OpenAI(base_url=f"{root}/v1", api_key="any", max_retries=20)


def completions():
    answer = client.chat.completions.create(model="p/m", messages=[{"role": "user", "content": "Go."}])
    return answer.turnwright, answer.choices[0].message.content


def responses():
    answer = client.responses.create(model="p/m", input="Go.")
    assert answer.output[0].type == "mcp_call", answer
    return answer.turnwright, answer.output_text


extras, text = {"completions": completions, "responses": responses}[door]()
print(json.dumps({"conversation": extras["conversation_id"], "text": text}))
