"""The download, against a server on loopback."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mempursuit_eval import download
from mempursuit_eval.download import DownloadError, download_locomo

BODY = b'[{"sample_id": "conv-1"}]'


@pytest.fixture
def server(monkeypatch):
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, body = {"/good": (200, BODY), "/other": (200, b"[]")}.get(self.path, (503, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    monkeypatch.setattr(download, "LOCOMO_SHA256", hashlib.sha256(BODY).hexdigest())
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}", asked
        httpd.shutdown()


def test_the_file_is_fetched_checked_and_kept(server, tmp_path):
    url, asked = server
    path = download_locomo(tmp_path, f"{url}/good")
    assert path == tmp_path / "locomo10.json"
    assert path.read_bytes() == BODY
    assert download_locomo(tmp_path, f"{url}/good") == path
    assert asked == ["/good"], "a checked file is not fetched again"


def test_another_file_is_refused_and_not_kept(server, tmp_path):
    with pytest.raises(DownloadError, match="SHA-256 differs"):
        download_locomo(tmp_path, f"{server[0]}/other")
    assert not (tmp_path / "locomo10.json").exists()


def test_a_refusing_server_is_said_so(server, tmp_path):
    with pytest.raises(DownloadError, match=r"503.*\n.*--data PATH"):
        download_locomo(tmp_path, f"{server[0]}/broken")


def test_no_server_is_said_so(tmp_path):
    with pytest.raises(DownloadError, match=r"could not be fetched"):
        download_locomo(tmp_path, "http://127.0.0.1:9/none")


def test_a_folder_that_cannot_be_written_is_said_so(server, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DownloadError, match="cannot be written"):
        download_locomo(tmp_path / "file", f"{server[0]}/good")
