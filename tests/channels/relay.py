"""A relay for a test: what the Apprise API server does with `POST /notify`, with the real Apprise library. What that
would send to a service is caught, and printed as a JSON object: the relay's request, and each request of the library.
The first line is the port. A title that begins with `busy` is answered 424 once."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

import apprise

busy = set()


class Relay(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.relay(json.loads(raw)))
        self.send_header("content-length", "0")
        self.end_headers()

    def relay(self, asked):
        if self.path != "/notify" or self.headers["content-type"] != "application/json":
            return 400
        if asked["title"].startswith("busy") and asked["title"] not in busy:
            busy.add(asked["title"])
            return 424
        services = apprise.Apprise()
        if not services.add(asked["urls"]) or len(services) != 1:
            return 204
        sent = []

        def catch(url, *_, **given):
            sent.append({"url": str(url), "data": given.get("data"), "json": given.get("json")})
            answer = mock.Mock(status_code=200, content=b'{"ok": true, "result": {}}', headers={})
            answer.text = answer.content.decode()
            answer.json = lambda: json.loads(answer.content)
            return answer

        with mock.patch("requests.post", catch), mock.patch("requests.Session.request", lambda _, __, url, **g: catch(url, **g)):
            done = services.notify(
                title=asked["title"], body=asked["body"], notify_type=asked["type"], body_format=asked["format"]
            )
        print(json.dumps({"asked": asked, "sent": sent, "done": done}, default=str), flush=True)
        return 200 if done else 424


server = HTTPServer(("127.0.0.1", 0), Relay)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
# The test closes our input when it ends, however it does.
sys.stdin.read()
