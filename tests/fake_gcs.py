"""A Google Cloud Storage on loopback that TensorFlow's own `gs://` client can be pointed at."""

import datetime
import itertools
import re
import threading
import urllib.parse

from tests.fake_gcs_server import Answer, Faults, Request, Server, as_json, error

__all__ = ["FakeGcs", "Faults", "Request"]


class FakeGcs:
    """Serves objects while its context is open, to processes started with its environment.

    Args:
      objects: dict from `bucket/name` to content. Writes and deletions change it, and who changes
        it directly acts as another client. The buckets of these objects exist, also when nothing
        is left in them.
      page_size: the most entries that one answer to a list request holds.
      buckets: names of buckets that exist though they are empty.
      read_only: names of buckets that may be read but not changed.
      forbidden: names of buckets that may not even be read.
      faults: `Faults`; nothing goes wrong if None.

    Attributes:
      environment: dict of environment variables, to be laid over `os.environ` before a process
        uses `gs://` for the first time. Access is anonymous: credentials are not looked for.
      requests: list of every `Request` that was answered so far, without its body.
      injected: `Counter` of the faults so far, by their kind.
    """

    def __init__(
        self, objects, page_size=1000, buckets=(), read_only=(), forbidden=(), faults=None
    ):
        self.objects = objects
        self.page_size = page_size
        self.buckets = {*buckets, *read_only, *forbidden, *(key.split("/")[0] for key in objects)}
        self.read_only = read_only
        self.forbidden = forbidden
        self.faults = faults or Faults(share=0)
        self.injected = self.faults.injected
        self.environment = {}
        self.requests = []
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._sessions = {}
        self._versions = {}
        for key in objects:
            self._metadata(key)

    def __enter__(self):
        self._server = Server(self, self.faults).__enter__()
        self.environment = self._server.environment
        return self

    def __exit__(self, *exception):
        self._server.__exit__(*exception)

    def answer(self, request):
        """The answer to a request."""
        with self._lock:
            self.requests.append(request._replace(body=b""))
            for method, pattern, respond in ROUTES:
                match = re.fullmatch(pattern, request.path)
                if match and method == request.method:
                    names = [urllib.parse.unquote(name) for name in match.groups()]
                    changes = method != "GET" and respond is not FakeGcs.rewrite
                    return self._refusal(names[0], changes) or respond(self, request, *names)
        return error(400, f"FakeGcs does not know {request.method} {request.path}")

    def interrupted(self, request):
        """Keeps what came of an upload; nothing else is begun before its request is complete."""
        if request.method == "PUT" and request.body:
            self.answer(request)

    def _refusal(self, bucket, changes):
        """The error, if any, because of a bucket that is to be read or changed."""
        if bucket not in self.buckets:
            return error(404, "The specified bucket does not exist.")
        if bucket in self.forbidden or (changes and bucket in self.read_only):
            return error(403, "Anonymous caller does not have the permission.")
        return None

    # Reading.

    def bucket(self, request, bucket):
        """Metadata of a bucket."""
        return as_json({"name": bucket, "location": "US"})

    def listing(self, request, bucket):
        """Objects of a bucket and, with a delimiter, the folders in which the others are."""
        entries = self._entries(bucket, request.query)
        size = min(self.page_size, int(request.query.get("maxResults", self.page_size)))
        page = entries[:size]
        items = [self._metadata(f"{bucket}/{name}") for name, is_folder in page if not is_folder]
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
        return as_json(self._metadata(f"{bucket}/{name}"))

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

    # Writing.

    def create(self, request, bucket):
        """Stores an object, or opens a session in which it can be uploaded."""
        key = f"{bucket}/{request.query['name']}"
        if request.query.get("ifGenerationMatch") == "0" and key in self.objects:
            return error(412, "At least one of the pre-conditions you specified did not hold.")
        if request.query["uploadType"] == "media":
            return self._store(key, request.body)
        session = str(next(self._numbers))
        self._sessions[session] = _Session(key)
        query = urllib.parse.urlencode({"name": request.query["name"], "upload_id": session})
        return Answer(200, {"Location": f"https://www.googleapis.com{request.path}?{query}"}, b"")

    def upload(self, request, bucket):
        """Takes a part of an upload, or says how much of it came; the last part stores it."""
        session = self._sessions[request.query["upload_id"]]
        said = request.headers.get("content-range", f"bytes 0-/{len(request.body)}")
        first, total = re.fullmatch(r"bytes (?:(\d+)-\d*|\*)/(\d+)", said).groups()
        if session.answer is None:
            session.take(int(first or 0), request.body)
            if len(session.received) == int(total):
                session.answer = self._store(session.key, bytes(session.received))
        if session.answer is not None:
            return session.answer
        came = {"Range": f"bytes=0-{len(session.received) - 1}"} if session.received else {}
        return Answer(308, came, b"")

    def delete(self, request, bucket, name):
        """Removes an object."""
        self._versions.pop(f"{bucket}/{name}", None)
        if self.objects.pop(f"{bucket}/{name}", None) is None:
            return error(404, f"No such object: {bucket}/{name}")
        return Answer(204, {}, b"")

    def rewrite(self, request, bucket, name, *target):
        """Copies an object, also to another bucket."""
        content = self.objects.get(f"{bucket}/{name}")
        if content is None:
            return error(404, f"No such object: {bucket}/{name}")
        refusal = self._refusal(target[0], changes=True)
        return refusal or self._store("/".join(target), content, done=True)

    def _store(self, key, content, **more):
        self.objects[key] = content
        self._versions.pop(key, None)
        return as_json({**self._metadata(key), **more})

    def _metadata(self, key):
        """Size, time and generation, which are new if the content is another than before."""
        content = self.objects[key]
        if key not in self._versions or self._versions[key][0] is not content:
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            self._versions[key] = (content, str(next(self._numbers)), now)
        _, generation, updated = self._versions[key]
        return {
            "name": key.partition("/")[2],
            "size": str(len(content)),
            "generation": generation,
            "updated": updated,
        }

    def _entries(self, bucket, query):
        """Sorted pairs of a name and whether it is a folder, from the page's first one."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        entries = set()
        for key in list(self.objects):
            owner, _, name = key.partition("/")
            if owner == bucket and name.startswith(prefix):
                end = name.find(delimiter, len(prefix)) if delimiter else -1
                entries.add((name, False) if end < 0 else (name[: end + len(delimiter)], True))
        return sorted(entry for entry in entries if entry[0] > query.get("pageToken", ""))


class _Session:
    """An upload under way."""

    def __init__(self, key):
        self.key = key
        self.received = bytearray()
        self.answer = None  # That of the stored object.

    def take(self, first, part):
        """Takes a part that begins at byte `first`; what came before of it is replaced."""
        if first > len(self.received):
            raise ValueError(f"A gap in the upload of {self.key}: {len(self.received)} to {first}")
        if part:
            self.received[first:] = part


ROUTES = (
    ("GET", "/storage/v1/b/([^/]+)", FakeGcs.bucket),
    ("GET", "/storage/v1/b/([^/]+)/o", FakeGcs.listing),
    ("GET", "/storage/v1/b/([^/]+)/o/([^/]+)", FakeGcs.object),
    ("GET", "/([^/]+)/(.+)", FakeGcs.media),
    ("POST", "/upload/storage/v1/b/([^/]+)/o", FakeGcs.create),
    ("PUT", "/upload/storage/v1/b/([^/]+)/o", FakeGcs.upload),
    ("DELETE", "/storage/v1/b/([^/]+)/o/([^/]+)", FakeGcs.delete),
    ("POST", "/storage/v1/b/([^/]+)/o/([^/]+)/rewriteTo/b/([^/]+)/o/([^/]+)", FakeGcs.rewrite),
)
