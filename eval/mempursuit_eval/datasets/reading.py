"""What the loaders of JSON benchmarks share: reading, and errors that say where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mempursuit_eval.datasets.base import Conversation, DataError


def read_json(path: Path) -> tuple[bytes, Any]:
    """Return the file's bytes and its content.

    Raises:
        DataError: it is missing or not JSON.
    """
    try:
        raw = path.read_bytes()
        return raw, json.loads(raw)
    except FileNotFoundError:
        raise DataError(
            f"--data: there is no file {path}; `mempursuit-eval download locomo --to .` fetches "
            "locomo10.json"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"--data: {path} cannot be read as JSON: {error}") from None


def samples(
    path: Path,
    value: Any,
    benchmark: str,
    id_key: str,
    read: Callable[[dict[str, Any], int], Conversation],
) -> Iterator[Conversation]:
    """Yield a conversation for each sample of a list, checking that their ids differ.

    `benchmark` and `id_key`, where the ids come from, are for the messages.

    Raises:
        DataError: `value` is no list, or a sample is not as expected; the message says which.
    """
    if not isinstance(value, list) or not value:
        raise DataError(f"--data: {path} must hold a non-empty list of {benchmark} samples")
    seen: set[str] = set()
    for n, sample in enumerate(value):
        where = f"{path.name}, sample {n}"
        try:
            conversation = read(sample, n)
        except KeyError as error:
            raise DataError(f"{where}: the key {error} is missing") from None
        except (TypeError, AttributeError, IndexError) as error:
            raise DataError(f"{where}: not in {benchmark}'s format ({error})") from None
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if conversation.id in seen:
            raise DataError(f"{where}: {id_key} must be unique, {conversation.id!r} is not")
        seen.add(conversation.id)
        yield conversation
