# SPDX-License-Identifier: MIT
"""The official Python SDK, one session through the real shim; what it saw goes to stdout as JSON.

    python drive.py MODE COMMAND ARGUMENT…      MODE: legacy, auto or modern
"""
import asyncio
import json
import os
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

FIGURE = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"


def plain(result):
    return json.loads(result.model_dump_json(by_alias=True, exclude_none=True))


async def main(mode, command, *arguments):
    environment = {k: v for k, v in os.environ.items() if k.startswith("IPYTHON_MCP_")}
    parameters = StdioServerParameters(command=command, args=list(arguments), env=environment)
    modes = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}
    seen = {}
    async with Client(stdio_client(parameters), mode=modes[mode]) as client:
        async def call(tool, **arguments):
            return plain(await client.call_tool(tool, arguments))

        async def names():
            return [t.name for t in (await client.list_tools()).tools]

        seen["revision"] = client.protocol_version
        seen["tools"] = await names()
        await call("execute", code='answer = 6 * 7; print("HELLO")')
        seen["value"] = await call("execute", code="answer")
        seen["error"] = await call("execute", code="1/0")
        seen["figure"] = await call("execute", code=FIGURE)
        await call("execute", code="def double(x: int) -> int:\n    return 2 * x")
        seen["called"] = await call("call_function", name="double", arguments={"x": 21})
        await call("register_tool", name="double")
        seen["grown"] = await names()
        seen["registered"] = await call("double", x=4)
        await call("unregister_tool", names=["double"])
        seen["listed"] = await call("list")
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
