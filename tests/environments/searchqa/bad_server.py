"""A retrieval server that misbehaves in the way that its first argument names; it prints its address.

It answers /health as a good one would, so that a client starts, but for the modes that are about /health.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = {"document": {"id": "1", "contents": '"Title"\ntext'}, "score": 1.0}
ANSWERS = {
    "truncated": json.dumps({"result": [[GOOD]]})[:-9],
    "html": "<html>502 Bad Gateway</html>",
    "list": "[]",
    "no_result": '{"results": []}',
    "too_few": '{"result": []}',
    "not_lists": '{"result": [{"document": 1}]}',
    "no_text": '{"result": [[{"document": {"id": "1"}, "score": 1.0}]]}',
    "text_score": '{"result": [[{"document": {"id": "1", "contents": "a"}, "score": "high"}]]}',
    "null": '{"result": [null]}',
    "deep": "[" * 100_000,
    "huge_score": '{"result": [[{"document": {"id": "1", "contents": "a"}, "score": 1%s}]]}' % ("0" * 400),
    "drip_health": '{"result": [[]]}',
    "deep_health": json.dumps({"result": [[GOOD]]}),
    "good": json.dumps({"result": [[GOOD]]}),
    "plain": json.dumps({"result": [[GOOD["document"]]]}),
    "nothing": '{"result": [[]]}',
}


class Handler(BaseHTTPRequestHandler):
    mode = "good"
    asked = 0

    def do_GET(self) -> None:
        if self.mode == "nothing":
            return self._send(404, "{}")
        if self.mode == "deep_health":
            return self._send(200, ANSWERS["deep"])
        if self.mode == "drip_health":
            return self._drip('{"passages": 5}')
        self._send(200, json.dumps({"passages": 0 if self.mode == "empty" else 5}))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Handler.asked += 1
        if self.mode == "slow":
            time.sleep(60)
        if self.mode == "drip":
            return self._drip(ANSWERS["good"])
        if self.mode == "dies":
            if Handler.asked > 1:
                os._exit(1)
            return self._send(200, ANSWERS["good"])
        if self.mode == "busy_once":
            return self._send(*((503, "busy") if Handler.asked == 1 else (200, ANSWERS["good"])))
        if self.mode == "refuses":
            return self._send(422, '{"detail": "field required"}')
        self._send(200, ANSWERS[self.mode])

    def _drip(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(20):  # each drop is in time, all together are not
            self.wfile.write(b" ")
            time.sleep(0.15)
        self.wfile.write(text.encode())

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    Handler.mode = sys.argv[1]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
