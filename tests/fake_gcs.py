"""A Google Cloud Storage on loopback that TensorFlow's own `gs://` client can be pointed at.

The client speaks to https://*.googleapis.com only, but it honours `https_proxy` and
`CURL_CA_BUNDLE`. So one server on 127.0.0.1 plays an HTTP proxy that, asked to CONNECT anywhere,
turns into that host: it starts TLS with a certificate of its own CA and answers as GCS does.
"""

import http.server
import json
import pathlib
import re
import ssl
import tempfile
import threading
import urllib.parse
from typing import NamedTuple

import trustme


class Request(NamedTuple):
    """What was asked; `path` is still percent-encoded, `query` is not."""

    method: str
    path: str
    query: dict
    headers: dict


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    headers: dict
    body: bytes


class FakeGcs:
    """Serves objects while its context is open, to processes started with its environment.

    Args:
      objects: dict from `bucket/name` to content. A bucket exists if it has an object.
      page_size: the most entries that one answer to a list request holds.

    Attributes:
      environment: dict of environment variables, to be laid over `os.environ` before a process
        uses `gs://` for the first time. Access is anonymous: credentials are not looked for.
      requests: list of every `Request` so far.
    """

    def __init__(self, objects, page_size=1000):
        self.objects = objects
        self.page_size = page_size
        self.environment = {}
        self.requests = []

    def __enter__(self):
        authority = trustme.CA()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("*.googleapis.com").configure_cert(self.tls)
        self._folder = tempfile.TemporaryDirectory()
        bundle = pathlib.Path(self._folder.name, "ca.pem")
        authority.cert_pem.write_to_path(bundle)
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.environment = _environment(self._server.server_port, self._folder.name, bundle)
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._folder.cleanup()

    def answer(self, request):
        """The answer to a request. Override it to inject faults."""
        self.requests.append(request)
        for method, pattern, respond in ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                names = [urllib.parse.unquote(name) for name in match.groups()]
                if not any(key.startswith(f"{names[0]}/") for key in self.objects):
                    return error(404, "The specified bucket does not exist.")
                return respond(self, request, *names)
        return error(400, f"FakeGcs does not know {request.method} {request.path}")

    def bucket(self, request, bucket):
        """Metadata of a bucket."""
        return as_json({"name": bucket, "location": "US"})

    def listing(self, request, bucket):
        """Objects of a bucket and, with a delimiter, the folders in which the others are."""
        entries = self._entries(bucket, request.query)
        size = min(self.page_size, int(request.query.get("maxResults", self.page_size)))
        page = entries[:size]
        items = [self._metadata(bucket, name) for name, is_folder in page if not is_folder]
        prefixes = [name for name, is_folder in page if is_folder]
        token = page[-1][0] if len(entries) > size else None
        answer = {"items": items, "prefixes": prefixes, "nextPageToken": token}
        return as_json({key: value for key, value in answer.items() if value})

    def object(self, request, bucket, name):
        """Metadata of an object or, with `alt=media`, its content."""
        if request.query.get("alt") == "media":
            return self.media(request, bucket, name)
        if f"{bucket}/{name}" not in self.objects:
            return error(404, f"No such object: {bucket}/{name}")
        return as_json(self._metadata(bucket, name))

    def media(self, request, bucket, name):
        """Content of an object, or the range of it that was asked for."""
        content = self.objects.get(f"{bucket}/{name}")
        if content is None:
            return error(404, f"No such object: {bucket}/{name}")
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if not span:
            return Answer(200, {}, content)
        size, first = len(content), int(span[1])
        if first >= size:
            return error(416, "Range not satisfiable", {"Content-Range": f"bytes */{size}"})
        part = content[first : int(span[2] or size) + 1]
        where = f"bytes {first}-{first + len(part) - 1}/{size}"
        return Answer(206, {"Content-Range": where}, part)

    def _metadata(self, bucket, name):
        size = str(len(self.objects[f"{bucket}/{name}"]))
        return {"name": name, "size": size, "generation": "1", "updated": "2024-01-01T00:00:00Z"}

    def _entries(self, bucket, query):
        """Sorted pairs of a name and whether it is a folder, from the page's first one."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        entries = set()
        for key in self.objects:
            owner, _, name = key.partition("/")
            if owner == bucket and name.startswith(prefix):
                end = name.find(delimiter, len(prefix)) if delimiter else -1
                entries.add((name, False) if end < 0 else (name[: end + len(delimiter)], True))
        return sorted(entry for entry in entries if entry[0] > query.get("pageToken", ""))


ROUTES = (
    ("GET", "/storage/v1/b/([^/]+)", FakeGcs.bucket),
    ("GET", "/storage/v1/b/([^/]+)/o", FakeGcs.listing),
    ("GET", "/storage/v1/b/([^/]+)/o/([^/]+)", FakeGcs.object),
    ("GET", "/([^/]+)/(.+)", FakeGcs.media),
)


def as_json(value, status=200, headers=()):
    """An answer of the JSON API."""
    headers = {"Content-Type": "application/json", **dict(headers)}
    return Answer(status, headers, json.dumps(value).encode())


def error(status, message, headers=()):
    """An error of the JSON API."""
    return as_json({"error": {"code": status, "message": message}}, status, headers)


def _environment(port, folder, bundle):
    return {
        "https_proxy": f"http://127.0.0.1:{port}", "no_proxy": "", "NO_PROXY": "",
        "CURL_CA_BUNDLE": str(bundle), "CLOUDSDK_CONFIG": folder,
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "", "GOOGLE_APPLICATION_CREDENTIALS": "",
        "NO_GCE_CHECK": "true", "GCE_METADATA_HOST": "127.0.0.1:1",  # Nobody listens there.
        "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "0",  # Retries do not wait.
    }


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection to `fake`: a CONNECT, then requests over TLS."""

    protocol_version = "HTTP/1.1"

    def do_CONNECT(self):
        self.send_response(200)
        self.end_headers()
        self.request = self.fake.tls.wrap_socket(self.connection, server_side=True)
        self.setup()  # Reads and writes go through TLS from here on.

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.fake.answer(Request(self.command, url.path, query, headers))
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": len(answer.body)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def finish(self):
        super().finish()
        self.request.close()

    def log_message(self, *args):
        """Keeps the tests' output clean."""
