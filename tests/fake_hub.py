"""A Hugging Face Hub of one process on loopback: enough of it for `huggingface_hub` itself."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

TOKEN = "hf_of_the_tests"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the Hub does; `server.repos` is a dict from name to dict from path to bytes."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Says nothing."""

    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        found = re.fullmatch(r"/api/models/(.+?)(/(revision|tree)/([^/]+))?", path)
        if found:
            return self._about(found[1], found[3])
        found = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        files = self.server.repos.get(found[1], {}) if found else {}
        if not found or found[3] not in files:
            return self._refuse(404, "EntryNotFound")
        content = files[found[3]]
        etag = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'}
        return self._send(200, content, etag | {"X-Repo-Commit": commit_of(files)})

    do_HEAD = do_GET

    def _about(self, repo, kind):
        files = self.server.repos.get(repo)
        if files is None:
            return self._refuse(404, "RepoNotFound")
        if kind == "tree":
            rows = [{"type": "file", "path": name, "size": len(content),
                     "oid": hashlib.sha1(content).hexdigest()}
                    for name, content in files.items()]  # fmt: skip
            return self._json(rows)
        siblings = [{"rfilename": name} for name in files]
        return self._json({"id": repo, "sha": commit_of(files), "siblings": siblings,
                           "tags": [], "downloads": 0, "likes": 0, "private": False})  # fmt: skip

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self._refuse(401, None)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked['organization']}/{asked['name']}"
            status = 409 if repo in self.server.repos else 200
            self.server.repos.setdefault(repo, {})
            return self._json({"url": f"{self.server.address}/{repo}"}, status)
        if self.path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        found = re.fullmatch(r"/api/models/(.+?)/(preupload|commit)/main(\?.*)?", self.path)
        if found[2] == "preupload":
            rows = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for file in json.loads(body)["files"]]  # fmt: skip
            return self._json({"files": rows})
        files = self.server.repos[found[1]]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            if line["key"] == "deletedFile":
                del files[value["path"]]
        oid = commit_of(files)
        return self._json({"commitUrl": f"{self.server.address}/{found[1]}/commit/{oid}",
                           "commitOid": oid, "hookOutput": ""})  # fmt: skip

    def _json(self, value, status=200):
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _refuse(self, status, code):
        self._send(status, b"{}", {"X-Error-Code": code} if code else {})

    def _send(self, status, content, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def commit_of(files):
    """Forty digits that stand for the content of all files."""
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


@contextlib.contextmanager
def serving(repos):
    """Yields the environment of a process that takes this server for the Hub."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.repos = repos
    server.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"HF_ENDPOINT": server.address, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
               "HF_HUB_DISABLE_TELEMETRY": "1", "HF_TOKEN": TOKEN}  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
