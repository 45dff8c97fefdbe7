# SPDX-License-Identifier: MIT
"""Validates what the daemon sends against the official schema of its revision.

Beyond the schema, which leaves every object open, check_message() holds messages to what only text
says: no modern member in a legacy result, serverInfo in every modern one, a truly empty answer to ping.
"""

import functools
import json
import os

import jsonschema

import paths

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
REVISIONS = LEGACY + [MODERN]

META = "io.modelcontextprotocol/"

RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "prompts/list": "ListPromptsResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}

NOTIFICATIONS = {
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/cancelled": "CancelledNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}


class Violation(AssertionError):
    """A message that its revision does not allow."""


@functools.cache
def _document(revision):
    with open(os.path.join(paths.SRCDIR, "tests/wire/schema", revision, "schema.json")) as f:
        return json.load(f)


@functools.cache
def validator(revision, name):
    """The compiled validator of one definition of one revision."""
    document = _document(revision)
    defs = "$defs" if "$defs" in document else "definitions"
    root = {"$schema": document["$schema"], defs: document[defs], "$ref": f"#/{defs}/{name}"}
    return jsonschema.validators.validator_for(root)(root)


def require(revision, name, value):
    """Raises Violation when `value` is no `name` of that revision."""
    error = jsonschema.exceptions.best_match(validator(revision, name).iter_errors(value))
    if error:
        place = "/".join(str(p) for p in error.absolute_path)
        raise Violation(f"not a {name} of {revision}: at /{place}: {error.message[:400]}")


def check_success(revision, method, message):
    """A response with a result, to a request of that method and revision."""
    result = message["result"]
    if method not in RESULTS:
        raise Violation(f"a result for {method!r}, a method that has none")
    name = RESULTS[method]
    require(revision, name, result)
    if revision == MODERN:
        require(revision, "JSONRPCResultResponse", message)
        if result.get("resultType") != "complete":
            raise Violation("resultType is not \"complete\"")
        info = result.get("_meta", {}).get(META + "serverInfo")
        if not isinstance(info, dict) or "name" not in info or "version" not in info:
            raise Violation("no serverInfo in a modern result's _meta")
        cached = method in ("server/discover", "tools/list")
        if cached != ("ttlMs" in result) or cached != ("cacheScope" in result):
            raise Violation(f"ttlMs and cacheScope do not fit {method}")
        return
    require(revision, "JSONRPCResultResponse" if revision == "2025-11-25" else "JSONRPCResponse", message)
    for member in ("resultType", "ttlMs", "cacheScope", "supportedVersions"):
        if member in result:
            raise Violation(f"{member} in a legacy result")
    if name == "EmptyResult" and result != {}:
        raise Violation(f"the answer to {method} is not empty")
    if revision < "2025-06-18":
        if "structuredContent" in result:
            raise Violation("structuredContent before 2025-06-18")
        for tool in result.get("tools", []):
            for member in ("title", "outputSchema", "_meta"):
                if member in tool:
                    raise Violation(f"a tool with {member} before 2025-06-18")
    if revision < "2025-03-26":
        for tool in result.get("tools", []):
            if "annotations" in tool:
                raise Violation("a tool with annotations before 2025-03-26")


def check_error(revision, message):
    """A response with an error. Without an id only the two newest revisions have a valid form."""
    error = message["error"]
    if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
        raise Violation("an error without integer code and message")
    code = error["code"]
    if -32019 <= code <= -32000 or (-32099 <= code <= -32020 and code not in (-32022, -32021)):
        raise Violation(f"error code {code} is not ours to use")
    if revision is None or ("id" not in message and revision < "2025-11-25"):
        return
    if revision >= "2025-11-25":
        require(revision, "JSONRPCErrorResponse", message)
    else:
        require(revision, "JSONRPCError", message)
    if code == -32022:
        if revision != MODERN:
            raise Violation("UnsupportedProtocolVersion to a legacy request")
        require(revision, "UnsupportedProtocolVersionError", message)


def check_notification(revision, message):
    """A notification, in the revision of the connection or of the stream that carries it."""
    method = message["method"]
    if method not in NOTIFICATIONS:
        raise Violation(f"an unexpected notification {method!r}")
    require(revision, "JSONRPCNotification", message)
    require(revision, NOTIFICATIONS[method], message)
    if method == "notifications/progress" and revision == "2024-11-05" and "message" in message["params"]:
        raise Violation("a progress message before 2025-03-26")
