"""The memories of a run, written by the frameworks themselves."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from mempursuit_eval.backbones import Backbone, backbone_class
from mempursuit_eval.datasets import Conversation, DataError, Dataset
from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.caller import Caller, Spent
from mempursuit_eval.judged.client import Chat, RetryPolicy
from mempursuit_eval.judged.errors import EndpointError
from mempursuit_eval.native.base import Endpoint, Writer, WritingFailedError, Written
from mempursuit_eval.native.options import WriterOptions
from mempursuit_eval.native.proxy import Ledger, WriterProxy
from mempursuit_eval.native.registry import make_writer
from mempursuit_eval.native.surroundings import calls_stay_on_loopback
from mempursuit_eval.records import MemoryRecord
from mempursuit_eval.sources import NATIVE, Report

# In the folder of a conversation's store.
MEMORIES, WRITTEN = "memories.jsonl", "written.json"


class NativeMemories:
    """Each framework's own writer fills its stores; as a context manager.

    A conversation whose writing was cut short is written again from its start, but every reply it
    had is on the disk and is not asked again.

    Attributes:
        spent: framework -> what this run has asked and paid.

    Raises:
        CacheError: the file of replies cannot be used.
        EndpointError: OpenAI's own endpoint is meant and there is no key.
    """

    def __init__(
        self, options: WriterOptions, replies: Path, policy: RetryPolicy | None = None
    ) -> None:
        self.options = options
        self.spent: dict[str, Spent] = {}
        self._writers: dict[str, Writer] = {}
        self._callers: dict[str, Caller] = {}
        self._chat = (
            None
            if options.dry_run
            else Chat(options.base_url, policy or RetryPolicy(), options.concurrency)
        )
        self._cache = ReplyCache(replies)

    def check(self, dataset: Dataset, frameworks: Sequence[str]) -> None:
        """See `MemorySource`.

        Raises:
            DataError: a conversation has no turns.
            ValueError, BackboneUnavailableError: a framework is not there or has no writer.
        """
        for conversation in dataset.conversations:
            if not conversation.memories.get("turns"):
                raise DataError(f"{conversation.id} has no turns to write memories of")
        for name in frameworks:
            self.writer(name)

    def writer(self, framework: str) -> Writer:
        """Return the writer of `framework`.

        Raises:
            ValueError, BackboneUnavailableError: it is not there or has none.
        """
        if framework not in self._writers:
            backbone_class(framework)
            self._writers[framework] = make_writer(framework)
        return self._writers[framework]

    def key(self, framework: str) -> object:
        """See `MemorySource`; the endpoint's address is left out."""
        return [NATIVE, self.options.model, self.writer(framework).version]

    def fill(self, backbone: Backbone, conversation: Conversation, report: Report) -> None:
        """See `MemorySource`.

        Raises:
            WritingFailedError: a call failed for good.
            EndpointError: so will every other.
        """
        writer = self.writer(backbone.name)
        expected = len(writer.plan(conversation))
        report("write", 0, expected)
        with ExitStack() as stack:
            stack.enter_context(calls_stay_on_loopback())
            proxy = stack.enter_context(
                WriterProxy(
                    self._caller(backbone.name),
                    backbone.name,
                    self.options.concurrency,
                    lambda calls: report("write", calls, max(calls, expected)),
                )
            )
            endpoint = Endpoint(proxy.url, proxy.key, self.options.model, self.options.concurrency)
            try:
                written = writer.write(backbone, conversation, endpoint)
            except Exception as error:
                _raise_failure(proxy, backbone.name, conversation.id, error)
                raise
            _raise_failure(proxy, backbone.name, conversation.id)
        _save(backbone.folder, written, proxy.ledger, self._open_chat().address)

    def records(self, folder: Path, conversation: Conversation) -> Sequence[MemoryRecord]:
        """See `MemorySource`."""
        lines = (folder / MEMORIES).read_text(encoding="utf-8").splitlines()
        return [MemoryRecord.from_row(json.loads(line)) for line in lines]

    def facts(self, framework: str, folders: Sequence[Path]) -> dict[str, Any]:
        """See `MemorySource`; counts are over all conversations and include kept replies."""
        counts: Counter[str] = Counter()
        notes: dict[str, Any] = {}
        for folder in folders:
            for name, value in json.loads((folder / WRITTEN).read_text(encoding="utf-8")).items():
                if isinstance(value, str):
                    notes[name] = value
                else:
                    counts[name] += value
        facts = {"written_by": self.options.model, **self.writer(framework).facts(), **notes}
        estimated = bool(counts.pop("estimated"))
        return {**facts, **counts, "tokens_estimated": estimated}

    def _caller(self, framework: str) -> Caller:
        if framework not in self._callers:
            self._callers[framework] = Caller(self._cache, self._open_chat())
            self.spent[framework] = self._callers[framework].spent
        return self._callers[framework]

    def _open_chat(self) -> Chat:
        assert self._chat is not None, "a dry run writes nothing"
        return self._chat

    def __enter__(self) -> NativeMemories:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._chat is not None:
            self._chat.stop()
            self._chat.close()
        self._cache.close()


def _raise_failure(
    proxy: WriterProxy, framework: str, conversation: str, error: Exception | None = None
) -> None:
    """Raise if the store is not whole because of the endpoint.

    Frameworks differ in what they do when a call fails; several go on without its memories.
    """
    failure = proxy.failure
    if isinstance(failure, EndpointError):
        raise failure from error
    if failure is None and proxy.in_flight and error is None:
        failure = TimeoutError(f"{framework} did not wait for {proxy.in_flight} of its calls")
    if failure is not None:
        raise WritingFailedError(
            f"{framework} could not write {conversation}: {failure}. What was answered is kept; "
            "the same command goes on from here"
        ) from error


def _save(folder: Path, written: Written, ledger: Ledger, address: str) -> None:
    records = written.records
    lines = (json.dumps(record.as_row(), ensure_ascii=False) + "\n" for record in records)
    _replace(folder / MEMORIES, "".join(lines))
    about = {
        **asdict(ledger),
        "memories": len(records),
        "memories_of_unknown_session": sum(record.session is None for record in records),
        "endpoint": address,
        **written.notes,
    }
    _replace(folder / WRITTEN, json.dumps(about, indent=2) + "\n")


def _replace(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
