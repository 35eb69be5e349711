"""The HTTP part of `tests.fake_gcs`: a proxy that becomes the host it is asked for, and faults.

TensorFlow's `gs://` client speaks to https://*.googleapis.com only, but it honours `https_proxy`
and `CURL_CA_BUNDLE`. So one server on 127.0.0.1 plays an HTTP proxy that, asked to CONNECT
anywhere, turns into that host: it starts TLS with a certificate of its own CA and answers itself.
"""

import collections
import http.server
import json
import pathlib
import random
import ssl
import sys
import tempfile
import threading
import urllib.parse
from typing import NamedTuple

import trustme

REASONS = {
    400: "invalid",
    403: "forbidden",
    404: "notFound",
    412: "conditionNotMet",
    416: "requestedRangeNotSatisfiable",
    429: "rateLimitExceeded",
    503: "backendError",
}
CUTS = ("cut request", "cut answer", "cut body")


class Request(NamedTuple):
    """What was asked; `path` is still percent-encoded, `query` is not."""

    method: str
    path: str
    query: dict
    headers: dict
    body: bytes = b""


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    headers: dict
    body: bytes


def as_json(value, status=200, headers=()):
    """An answer of the JSON API."""
    headers = {"Content-Type": "application/json", **dict(headers)}
    return Answer(status, headers, json.dumps(value).encode())


def error(status, message, headers=()):
    """An error of the JSON API."""
    cause = {"message": message, "domain": "global", "reason": REASONS[status]}
    return as_json(
        {"error": {"code": status, "message": message, "errors": [cause]}}, status, headers
    )


class Faults:
    """Decides which requests go wrong, and how.

    Args:
      share: the probability that a request goes wrong.
      seed: of the random choices. They are made in the order in which requests come.
      kinds: what may happen, each as likely as the others.
        `503`, `429`: answered so, and not carried out.
        `cut request`: the connection ends in the middle of the request's body, or after its
          headers; it is not carried out, but an upload session keeps what it got.
        `cut answer`: it is carried out, then the connection ends without an answer.
        `cut body`: it is carried out, then the connection ends in the middle of the answer's body.
        `cut`: one of these three.
      where: callable from a `Request` to whether it may go wrong; all may if None.
      most: number of faults after which nothing goes wrong any more; no end if None.
    """

    def __init__(self, share=0.1, seed=0, kinds=("503", "429", "cut"), where=None, most=None):
        self.share = share
        self.kinds = kinds
        self.where = where or (lambda request: True)
        self.most = float("inf") if most is None else most
        self.injected = collections.Counter()
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def draw(self, request):
        """The kind of fault that befalls a request, or None."""
        with self._lock:
            if self.injected.total() >= self.most or not self.where(request):
                return None
            if self._random.random() >= self.share:
                return None
            kind = self._random.choice(self.kinds)
            kind = self._random.choice(CUTS) if kind == "cut" else kind
            self.injected[kind] += 1
            return kind


class Server:
    """Serves a service while its context is open.

    Args:
      service: has `answer(request)`, which gives an `Answer`, and `interrupted(request)`, which is
        told of a request whose body did not come in full.
      faults: `Faults`.

    Attributes:
      environment: dict of environment variables, for a process that is to meet this server.
    """

    def __init__(self, service, faults):
        self._members = {"service": service, "faults": faults}

    def __enter__(self):
        authority = trustme.CA()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("*.googleapis.com").configure_cert(tls)
        self._folder = tempfile.TemporaryDirectory()
        bundle = pathlib.Path(self._folder.name, "ca.pem")
        authority.cert_pem.write_to_path(bundle)
        handler = type("Handler", (_Handler,), {"tls": tls, **self._members})
        self._server = _HttpServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.environment = _environment(self._server.server_port, self._folder.name, bundle)
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._folder.cleanup()


def _environment(port, folder, bundle):
    return {
        "https_proxy": f"http://127.0.0.1:{port}",
        "no_proxy": "",
        "NO_PROXY": "",
        "CURL_CA_BUNDLE": str(bundle),
        "CLOUDSDK_CONFIG": folder,
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "",
        "GOOGLE_APPLICATION_CREDENTIALS": "",
        "NO_GCE_CHECK": "true",
        "GCE_METADATA_HOST": "127.0.0.1:1",  # Nobody listens there.
        "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "0",  # Retries do not wait.
    }


class _HttpServer(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # TensorFlow opens a connection for every request.

    def handle_error(self, request, client_address):
        """Reports what went wrong here, not that a client went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection to `service`: a CONNECT, then requests over TLS."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Or every answer waits 40 ms for an acknowledgement.

    def do_CONNECT(self):
        self.send_response(200)
        self.end_headers()
        self.request = self.tls.wrap_socket(self.connection, server_side=True)
        self.setup()  # Reads and writes go through TLS from here on.

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, url.path, query, headers)
        fault = self.faults.draw(request)
        request = request._replace(body=self._read_body(headers))
        if fault == "cut request":
            self.service.interrupted(request._replace(body=request.body[: len(request.body) // 2]))
            self.close_connection = True
        elif fault in ("503", "429"):
            self._send(error(int(fault), "An injected fault."))
        else:
            self._send(self.service.answer(request), fault)

    do_DELETE = do_POST = do_PUT = do_GET

    def _read_body(self, headers):
        if headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        body = bytearray()
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(body)

    def _send(self, answer, fault=None):
        self.close_connection = fault is not None
        if fault == "cut answer":
            return
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": len(answer.body)}.items():
            self.send_header(name, value)
        self.end_headers()
        size = len(answer.body)
        self.wfile.write(answer.body[: size // 2 if fault == "cut body" else size])

    def finish(self):
        super().finish()
        self.request.close()

    def log_message(self, *args):
        """Keeps the tests' output clean."""
