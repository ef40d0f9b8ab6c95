"""From a finished run to one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mempursuit_eval.html.payload import build_payload
from mempursuit_eval.saved import load_run

STYLE = "report.css"
SCRIPTS = ("dom.js", "data.js", "table.js", "plots.js", "list.js", "evidence.js", "main.js")


def write_html(folder: Path) -> Path:
    """Write report.html into the folder of a finished run and return its path.

    Raises:
        DataError: the folder holds no finished run, or its stores are gone.
    """
    run = load_run(folder)
    path = folder / "report.html"
    path.write_text(render(build_payload(run), run.setting), encoding="utf-8")
    return path


def render(payload: dict[str, Any], setting: str) -> str:
    """Return the page; style, scripts and data are all inside it.

    The data is gzipped JSON in base64: small, and whatever a memory says cannot end its element.
    """
    environment = Environment(
        loader=PackageLoader("mempursuit_eval.html", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    packed = gzip.compress(text.encode(), mtime=0)  # no clock: the same run gives the same bytes
    return environment.get_template("report.html.j2").render(
        setting=setting,
        style=Markup(_asset(STYLE)),
        script=Markup("\n".join(_asset(name) for name in SCRIPTS)),
        data=base64.b64encode(packed).decode(),
    )


def unpack(page: str) -> dict[str, Any]:
    """Return the data a rendered page carries."""
    start = page.index(">", page.index('id="data"')) + 1
    packed = base64.b64decode(page[start : page.index("</script>", start)])
    data: dict[str, Any] = json.loads(gzip.decompress(packed))
    return data


def _asset(name: str) -> str:
    return (files("mempursuit_eval.html") / "assets" / name).read_text(encoding="utf-8")
