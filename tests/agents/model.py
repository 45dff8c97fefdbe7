#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A language model that only reads from a script: a test double for agent command-line programs.

  model.py SCRIPT.json LOG.jsonl [PORT]     (port 0 or none: any free one; prints "http://127.0.0.1:PORT" and serves)

SCRIPT is a list of turns. A turn is one call {"tool": "execute", "args": {...}}, a list of such calls (made in
parallel), or {"text": "..."} (which ends the agent's turn). After the last one the model says "done".
"tool" is matched against the END of the names that the client offers (mcp__srv__execute, srv_execute, ...), so one
script fits every client. A call may have "wait": seconds to hold the reply back. A tool that is not offered ends the
turn with the text "NO SUCH TOOL: name".

The place in the script is the number of tool results in the request, so a client's retries repeat a turn and its
side requests (titles, summaries: no tools offered) are answered "ok" without moving on.

LOG gets one line per request: t, path, tools (names offered), seen (what the model would see of each tool result:
{"id", "error", "parts": [{"text": ..} or {"image": mime, "bytes": n} or {"other": ..}]}), say (what was answered), body.

Speaks, each streaming or not: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini generateContent.
"""
import json, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = json.load(open(sys.argv[1]))
LOG, LOCK, N = open(sys.argv[2], "a", buffering=1), threading.Lock(), [0]


def part(p):
    """One content block of any of the four formats, normalised."""
    if isinstance(p, str):
        return {"text": p}
    t = p.get("type", "")
    if "text" in p:
        return {"text": p["text"]}
    src = p.get("source") or p.get("inlineData") or {}
    if t == "image" or "inlineData" in p:
        return {"image": src.get("media_type") or src.get("mimeType"), "bytes": len(src.get("data", "")) * 3 // 4}
    if t in ("input_image", "image_url"):
        u = p["image_url"]
        u = u if isinstance(u, str) else u["url"]
        return {"image": u.partition(";")[0][5:], "bytes": len(u.partition(",")[2]) * 3 // 4}
    return {"other": p}


def parts(c):
    return [part(x) for x in c] if isinstance(c, list) else [part(c)] if c not in (None, "") else []


def read_anthropic(b):
    tools = [(t["name"], None) for t in b.get("tools", [])]
    seen = [{"id": c["tool_use_id"], "error": bool(c.get("is_error")), "parts": parts(c.get("content"))}
            for m in b.get("messages", []) if isinstance(m["content"], list)
            for c in m["content"] if c["type"] == "tool_result"]
    return tools, seen


def read_responses(b):
    def names(ts):
        r = []
        for t in ts:
            if t.get("type") == "namespace":            # Codex: one namespace per MCP server
                r += [(u["name"], t["name"]) for u in t["tools"]]
            elif "name" in t or t.get("type") == "tool_search":
                r.append((t.get("name", "tool_search"), None))
        return r
    tools, seen = names(b.get("tools", [])), []
    for c in b["input"] if isinstance(b["input"], list) else []:
        if c.get("type") == "function_call_output":
            seen.append({"id": c["call_id"], "error": None, "parts": parts(c["output"])})
        elif c.get("type") == "tool_search_output":     # Codex, models known to it: MCP tools are found by search
            found = names(c["tools"])
            tools += found
            seen.append({"id": c["call_id"], "error": None, "parts": [{"tools": [t[0] for t in found]}]})
    return tools, seen


def read_chat(b):
    tools, seen, tail = [(t["function"]["name"], None) for t in b.get("tools", [])], [], False
    for m in b.get("messages", []):
        if m["role"] == "tool":
            seen.append({"id": m["tool_call_id"], "error": None, "parts": parts(m["content"])})
        elif m["role"] == "user" and tail:          # images follow in a user message, this API has no others
            seen[-1]["parts"] += [dict(p, in_user_message=True) for p in parts(m["content"])]
        tail = m["role"] == "tool"
    return tools, seen


def read_gemini(b):
    tools = [(f["name"], None) for t in b.get("tools", []) for f in t.get("functionDeclarations", [])]
    seen = []
    for m in b.get("contents", []):
        for p in m.get("parts", []):
            if "functionResponse" in p:
                f = p["functionResponse"]
                r = f.get("response", {})
                seen.append({"id": f.get("id"), "error": "error" in r,
                             "parts": [{"text": r.get("output", r.get("error", json.dumps(r)))}] + parts(f.get("parts"))})
            elif "inlineData" in p and seen:
                seen[-1]["parts"].append(part(p))
    return tools, seen


def decide(tools, seen):
    """The next turn: {"text"} or {"calls": [(id, (name, namespace), args)]}."""
    if not tools:
        return {"text": "ok"}
    done = 0
    for turn in SCRIPT:
        calls = turn if isinstance(turn, list) else [turn]
        if done >= len(seen):
            if "text" in calls[0]:
                return {"text": calls[0]["text"]}
            time.sleep(max(c.get("wait", 0) for c in calls))
            out = []
            for i, c in enumerate(calls):
                hit = [t for t in tools if t[0] == c["tool"]] or [t for t in tools if t[0].endswith("_" + c["tool"])]
                if not hit:
                    return {"text": "NO SUCH TOOL: " + c["tool"]}
                out.append((f"call_{done + i}", hit[0], c.get("args", {})))
            return {"calls": out}
        done += 0 if "text" in calls[0] else len(calls)
    return {"text": "done"}


def say_anthropic(a, b):
    msg = {"id": "msg_1", "type": "message", "role": "assistant", "model": b.get("model"), "content": [],
           "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    blocks = [{"type": "tool_use", "id": "toolu_" + i, "name": t[0], "input": g} for i, t, g in a.get("calls", [])] \
        or [{"type": "text", "text": a["text"]}]
    stop = "tool_use" if "calls" in a else "end_turn"
    if not b.get("stream"):
        return dict(msg, content=blocks, stop_reason=stop), None
    ev = [{"type": "message_start", "message": msg}]
    for i, k in enumerate(blocks):
        use = k["type"] == "tool_use"
        ev += [{"type": "content_block_start", "index": i, "content_block": dict(k, input={}) if use else dict(k, text="")},
               {"type": "content_block_delta", "index": i, "delta":
                {"type": "input_json_delta", "partial_json": json.dumps(k["input"])} if use else
                {"type": "text_delta", "text": k["text"]}},
               {"type": "content_block_stop", "index": i}]
    ev += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
           {"type": "message_stop"}]
    return None, ev


def say_responses(a, b):
    items = [{"type": "tool_search_call", "call_id": i, "execution": "client", "status": "completed", "arguments": g}
             if t[0] == "tool_search" else
             dict({"type": "function_call", "id": "fc_" + i, "call_id": i, "name": t[0], "arguments": json.dumps(g),
                   "status": "completed"}, **({"namespace": t[1]} if t[1] else {})) for i, t, g in a.get("calls", [])] \
        or [{"type": "message", "id": "m_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": a["text"], "annotations": []}]}]
    r = {"id": "resp_1", "object": "response", "created_at": 0, "status": "completed", "model": b.get("model"), "output": items,
         "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                   "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}}
    if not b.get("stream"):
        return r, None
    ev = [{"type": "response.created", "response": dict(r, status="in_progress", output=[])}]
    for i, k in enumerate(items):
        ev += [{"type": "response.output_item.added", "output_index": i, "item": k},
               {"type": "response.output_item.done", "output_index": i, "item": k}]
    return None, ev + [{"type": "response.completed", "response": r}]


def say_chat(a, b):
    msg = {"role": "assistant", "content": a.get("text")}
    if "calls" in a:
        msg["tool_calls"] = [{"index": n, "id": i, "type": "function", "function": {"name": t[0], "arguments": json.dumps(g)}}
                             for n, (i, t, g) in enumerate(a["calls"])]
    base = {"id": "c_1", "created": 0, "model": b.get("model")}
    use = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    stop = "tool_calls" if "calls" in a else "stop"
    if not b.get("stream"):
        return dict(base, object="chat.completion", usage=use, choices=[{"index": 0, "message": msg, "finish_reason": stop}]), None
    base["object"] = "chat.completion.chunk"
    return None, [dict(base, choices=[{"index": 0, "delta": msg, "finish_reason": None}]),
                  dict(base, choices=[{"index": 0, "delta": {}, "finish_reason": stop}]),
                  dict(base, choices=[], usage=use), "[DONE]"]


def say_gemini(a, b):
    ps = [{"functionCall": {"name": t[0], "args": g, "id": i}} for i, t, g in a.get("calls", [])] or [{"text": a["text"]}]
    r = {"candidates": [{"content": {"role": "model", "parts": ps}, "finishReason": "STOP", "index": 0}],
         "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    return (None, [r]) if b.get("stream") else (r, None)


class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = lambda *a: None

    def reply(self, body, kind="application/json", code=200):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def note(self, **k):
        with LOCK:
            N[0] += 1
            LOG.write(json.dumps(dict(n=N[0], t=round(time.time(), 2), path=self.path, **k)) + "\n")

    def do_GET(self):
        self.note(method=self.command)
        if self.path.split("?")[0].endswith("/models"):
            return self.reply(b'{"object":"list","data":[{"id":"scripted","object":"model"}],"models":[]}')
        self.reply(b"{}", code=404 if self.command == "GET" else 200)

    do_HEAD = do_GET

    def do_POST(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            raw = b""
            while n := int(self.rfile.readline(), 16):
                raw += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        try:
            b = json.loads(raw or b"{}")
        except ValueError:
            b = {}
        for end, read, say in (("/messages", read_anthropic, say_anthropic), ("/responses", read_responses, say_responses),
                               ("/chat/completions", read_chat, say_chat), ("enerateContent", read_gemini, say_gemini)):
            if path.endswith(end):
                if path.endswith(":streamGenerateContent"):
                    b["stream"] = True
                tools, seen = read(b)
                a = decide(tools, seen)
                self.note(tools=[f"{t[1] or ''}{t[0]}" for t in tools], seen=seen, say=a, body=b)
                whole, events = say(a, b)
                if events is None:
                    return self.reply(json.dumps(whole).encode())
                out = "".join((f"event: {e['type']}\n" if "type" in e else "") + "data: " +
                              (e if isinstance(e, str) else json.dumps(e)) + "\n\n" for e in events)
                return self.reply(out.encode(), "text/event-stream")
        self.note(other=raw[:2000].decode("latin1"))
        if path.endswith(("count_tokens", ":countTokens")):
            n = len(raw) // 4       # Claude Code and Gemini ask this for large results and images
            return self.reply(json.dumps({"input_tokens": n, "totalTokens": n}).encode())
        self.reply(b"{}", code=404)


if __name__ == "__main__":
    s = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3]) if len(sys.argv) > 3 else 0), H)
    s.daemon_threads = True
    print(f"http://127.0.0.1:{s.server_address[1]}", flush=True)
    s.serve_forever()
