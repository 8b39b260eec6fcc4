"""The adviser: one compound request, from two parallel retrievals to a streamed answer.

`import llmlat_otel.auto` is all that llmlat-otel asks of an app; `agent`, `retrieval` and `tool`
tell it which steps are the agent's own.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

import llmlat_otel.auto  # noqa: F401  (sees each call of the client below)
from llmlat_otel import agent, retrieval, tool
from stores import ACCOUNT, Stores

__all__ = ["main"]

QUESTION = "My desk lamp is broken. Can I have my money back, and where are my other orders?"

GET_ORDERS: Any = {
    "type": "function",
    "function": {
        "name": "get_orders",
        "description": "The latest orders of an account.",
        "parameters": {
            "type": "object",
            "properties": {
                "account": {"type": "string", "enum": [ACCOUNT]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 9},
            },
            "required": ["account", "limit"],
            "additionalProperties": False,
        },
    },
}

# A model of 270M parameters does not choose to call a tool, nor when to stop. `tool_choice` makes
# the grammar demand a call; these biases on Gemma's token ids open it, close it and end the turn
# as soon as the grammar lets them. The answer in turn may not end before `max_tokens`.
_END, _END_OF_TURN, _CALL_OPENS, _CALL_CLOSES = "1", "106", "6", "7"
FORCE_A_CALL = {_END_OF_TURN: 100, _CALL_OPENS: 60, _CALL_CLOSES: 30}
FORCE_AN_ANSWER = {_END: -100, _END_OF_TURN: -100, _CALL_OPENS: -100, _CALL_CLOSES: -100}
PROPOSAL_TOKENS = 64
ANSWER_TOKENS = 48


@dataclass(slots=True)
class ToolCall:
    """A tool call as its stream fills it in."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Adviser:
    """Answers a customer's question with two model calls and a tool between them."""

    def __init__(self, client: AsyncOpenAI, stores: Stores) -> None:
        self._client = client
        self._stores = stores

    async def advise(self, question: str) -> str:
        """The whole compound request."""
        async with agent("adviser"):
            _announce("retrieving the policy and the account")
            policy, account = await asyncio.gather(self._policy(), self._account())
            messages = _prompt(policy, account, question)
            _announce("first model call: it proposes a tool")
            call = await self._propose(messages)
            _announce("running the tool")
            messages += _tool_turn(call, await self._run(call))
            _announce("second model call: the answer")
            return await self._answer(messages)

    async def _policy(self) -> str:
        async with retrieval("policy"):
            return await self._stores.policy("refund")

    async def _account(self) -> str:
        async with retrieval("accounts"):
            return await self._stores.account(ACCOUNT)

    async def _propose(self, messages: list[ChatCompletionMessageParam]) -> ToolCall:
        call = ToolCall()
        stream = await self._chat(
            messages,
            tools=[GET_ORDERS],
            tool_choice="required",
            parallel_tool_calls=False,
            logit_bias=FORCE_A_CALL,
            max_tokens=PROPOSAL_TOKENS,
        )
        async for chunk in stream:
            for choice in chunk.choices:
                for delta in choice.delta.tool_calls or []:
                    call.id += delta.id or ""
                    call.name += delta.function.name or ""
                    call.arguments += delta.function.arguments or ""
        return call

    async def _run(self, call: ToolCall) -> str:
        async with tool(call.name, call_id=call.id):
            return await self._stores.orders(**json.loads(call.arguments))

    async def _answer(self, messages: list[ChatCompletionMessageParam]) -> str:
        stream = await self._chat(messages, logit_bias=FORCE_AN_ANSWER, max_tokens=ANSWER_TOKENS)
        text = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
        return "".join(text)

    async def _chat(self, messages: list[ChatCompletionMessageParam], **options: Any) -> Any:
        """A streamed call that asks the server to say when it starts and how far it is.

        `return_progress` is the app's to ask for: llmlat-otel never changes a request.
        """
        return await self._client.chat.completions.create(
            model=os.environ["ADVISER_MODEL"],
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            temperature=0,
            extra_body={"return_progress": True},
            **options,
        )


def _prompt(policy: str, account: str, question: str) -> list[ChatCompletionMessageParam]:
    rules = "You advise the customers of a shop. Follow these rules, and use the tool for orders."
    facts = f"{rules}\n\nRules:\n{policy}\n\nAccount {ACCOUNT}: {account}"
    return [{"role": "system", "content": facts}, {"role": "user", "content": question}]


def _tool_turn(call: ToolCall, result: str) -> list[ChatCompletionMessageParam]:
    function = {"name": call.name, "arguments": call.arguments}
    asked: Any = {"id": call.id, "type": "function", "function": function}
    return [
        {"role": "assistant", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": call.id, "content": result},
    ]


def _announce(step: str) -> None:
    """Tell whoever shows our progress what comes now."""
    print(step, flush=True)


async def main() -> None:
    """Answer one question, with the client configured by OPENAI_BASE_URL and OPENAI_API_KEY."""
    async with AsyncOpenAI(timeout=None) as client:
        await Adviser(client, Stores()).advise(QUESTION)
    _announce("answered")


if __name__ == "__main__":
    asyncio.run(main())
