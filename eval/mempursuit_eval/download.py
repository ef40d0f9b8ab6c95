"""Fetching data sets that may not be shipped."""

from __future__ import annotations

from pathlib import Path

import pooch
import requests

# The official file; CC BY-NC 4.0, so users fetch it themselves.
LOCOMO_URL = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
LOCOMO_SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
LOCOMO_LICENSE = "LoCoMo is CC BY-NC 4.0 (Maharana et al., 2024): not for commercial use."


class DownloadError(RuntimeError):
    """A file could not be fetched or is not the expected one; the message says what to do."""


def download_locomo(folder: Path | None = None, url: str = LOCOMO_URL) -> Path:
    """Fetch locomo10.json, check its SHA-256, and return where it is.

    A file already there with the right checksum is not fetched again.

    Raises:
        DownloadError: the server cannot be reached, refuses, or sends another file.
    """
    target = folder or Path(pooch.os_cache("mempursuit"))
    try:
        found = pooch.retrieve(
            url, known_hash=f"sha256:{LOCOMO_SHA256}", fname="locomo10.json", path=target
        )
    except requests.RequestException as error:
        raise DownloadError(
            f"{url} could not be fetched: {error}\nWith a browser, save the file anywhere and pass "
            "it by --data PATH."
        ) from error
    except ValueError as error:
        raise DownloadError(
            f"{url} is not the file these figures stand for (SHA-256 differs). It may have been "
            f"updated or cut short; nothing was kept. {error}"
        ) from error
    except OSError as error:
        raise DownloadError(f"{target} cannot be written: {error}") from error
    return Path(found)
