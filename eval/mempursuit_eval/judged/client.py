"""Calls to an OpenAI-compatible endpoint: retries, rate limits, and errors without the key."""

from __future__ import annotations

import email.utils
import logging
import os
import random
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import openai
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_any,
    stop_when_event_set,
)

from mempursuit_eval.judged.calls import Reply, Request
from mempursuit_eval.judged.errors import CallFailedError, EndpointError
from mempursuit_eval.judged.tokens import Usage, estimate_tokens

KEY = "OPENAI_API_KEY"
OPENAI_URL = "https://api.openai.com/v1"
TIMEOUT = 600.0  # seconds; a small model on a CPU takes its time
IN_A_ROW = 20  # calls that fail for good one after another before the run stops
_NO_KEY = "no-key"  # servers that need no key accept any
_SHORTEST_SECRET = 8  # characters; a shorter "key" is a placeholder and may be a common word
_HIDDEN = "[key]"
_LIKE_A_KEY = re.compile(r"\b(sk-|Bearer\s+)[A-Za-z0-9_\-*.]{6,}")
_HOPELESS = {401, 403, 404}  # wrong key, no access, no such model: no other call will fare better
_BUSY = {429, 503}
_AGAIN = {408, 409, 425, *_BUSY}


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how patiently a call is tried; times in seconds.

    Attributes:
        attempts: tries of one call, the first included.
        first: upper bound of the first random wait; it doubles with every try.
        longest: upper bound of any random wait.
        patience: the longest wait a server may ask for; a longer one fails the call.
    """

    attempts: int = 8
    first: float = 1.0
    longest: float = 60.0
    patience: float = 600.0


class _AgainError(Exception):
    """A try that may go better later; `after` is how many seconds the server asked for."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


@dataclass(frozen=True)
class Dialect:
    """What a model takes: newer ones refuse `max_tokens` and any temperature but their own."""

    limit: str = "max_tokens"
    temperature: bool = True

    def parameters(self, request: Request) -> dict[str, Any]:
        """Return the parameters of `request` in this dialect."""
        found = request.parameters
        if "max_tokens" in found:
            found[self.limit] = found.pop("max_tokens")
        if not self.temperature:
            found.pop("temperature", None)
        return found

    def after(self, refusal: str) -> Dialect:
        """Return the dialect to go on with after a 400 that says `refusal`."""
        if "max_completion_tokens" in refusal and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in refusal and "nsupported" in refusal:
            return replace(self, temperature=False)
        return self


class Chat:
    """Sends requests, each on its caller's thread; safe for threads.

    A server that is busy holds up all threads for as long as it asks, not only the one it told.

    Raises:
        EndpointError: OpenAI's own endpoint is meant and there is no key.
    """

    def __init__(
        self,
        base_url: str | None = None,
        policy: RetryPolicy = RetryPolicy(),
        concurrency: int = 1,
        timeout: float = TIMEOUT,
    ) -> None:
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        key = os.environ.get(KEY, "")
        if not key and url.rstrip("/") == OPENAI_URL:
            raise EndpointError(
                f"{KEY} is not set; set it, or name another endpoint by --base-url "
                "(one that needs no key is asked without)"
            )
        self.address = public_address(url)
        self.dialects: dict[str, Dialect] = {}
        self._secrets = [s for s in {key, *_userinfo(url)} if len(s) >= _SHORTEST_SECRET]
        self._policy = policy
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._hold_until = 0.0
        self._answered = False
        self._refused = 0
        self._patience_with_refusals = 3 + concurrency
        self._failed_in_a_row = 0
        for name in ("openai", "httpx", "httpx2"):  # a line a call, with the address as given
            logging.getLogger(name).setLevel(logging.WARNING)
        # Its own retries are off: they give up on long Retry-After and wait without jitter there.
        self._client = openai.OpenAI(
            api_key=key or _NO_KEY, base_url=url, max_retries=0, timeout=timeout
        )

    def send(self, request: Request) -> Reply:
        """Return the reply to `request`, trying again where that may help.

        Raises:
            CallFailedError: it failed for good.
            EndpointError: so will every other.
        """
        tries = Retrying(
            stop=stop_any(
                stop_after_attempt(self._policy.attempts), stop_when_event_set(self._stopped)
            ),
            wait=self._delay,
            sleep=self._sleep,
            retry=retry_if_exception_type(_AgainError),
            reraise=True,
        )
        try:
            reply: Reply = tries(self._once, request)
        except _AgainError as error:
            tried = tries.statistics.get("attempt_number", 1)
            raise self._failed(f"{error} (tried {tried} times)") from None
        with self._lock:
            self._failed_in_a_row = 0
        return reply

    def stop(self) -> None:
        """Send nothing any more: waits end as failed calls; what is on its way may still come."""
        self._stopped.set()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def scrub(self, text: str) -> str:
        """Return `text` without the key, should a server have echoed it."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def _explain(self, text: str) -> str:
        """Return an error's text without the key and without what looks like one."""
        return _LIKE_A_KEY.sub(rf"\1{_HIDDEN}", self.scrub(text))

    def _once(self, request: Request) -> Reply:
        if self._stopped.is_set():
            raise CallFailedError("stopped")
        self._wait_for_the_server()
        dialect = self.dialects.setdefault(request.model, Dialect())
        try:
            done = self._client.chat.completions.create(
                model=request.model,
                messages=request.messages,
                **dialect.parameters(request),
            )
        except openai.APITimeoutError:
            raise _AgainError("no reply in time") from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from None
        except openai.APIStatusError as error:
            if error.status_code == 400:
                spoken = dialect.after(str(error))
                if spoken != dialect:
                    self.dialects[request.model] = spoken
                    return self._once(request)
            raise self._refusal(error) from None
        except (openai.OpenAIError, ValueError) as error:
            raise _AgainError(self._explain(f"a reply that is not JSON: {error}")) from None
        self._answered = True
        return self._read(request, done)

    def _read(self, request: Request, done: Any) -> Reply:
        try:
            choice = done.choices[0]
            text = choice.message.content or ""
            finish = str(choice.finish_reason or "")
        except (AttributeError, IndexError, KeyError, TypeError):
            raise _AgainError("a reply that is no chat completion") from None
        if not isinstance(text, str):
            raise _AgainError("a reply whose content is no text")
        usage = getattr(done, "usage", None)
        prompt, completion = (
            getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")
        )
        if prompt and completion is not None:
            counted = Usage(int(prompt), int(completion), estimated=False)
        else:
            counted = Usage(estimate_tokens(request.prompt), estimate_tokens(text), estimated=True)
        return Reply(self.scrub(text), finish, counted)

    def _refusal(self, error: Any) -> Exception:
        """Return what to raise for a status of 400 or more."""
        status, code = error.status_code, str(getattr(error, "code", None) or "")
        said = self._explain(f"HTTP {status}: {_message(error)}")
        if status in _HOPELESS:
            return EndpointError(
                f"{self.address} refuses: {said}. Is {KEY} right, and is the model served there?"
            )
        if code == "insufficient_quota":
            return EndpointError(f"{self.address}: the account's quota is used up: {said}")
        if status not in _AGAIN and status < 500:
            return self._failed(said)
        after = retry_after(error.response.headers)
        if after is not None and after > self._policy.patience:
            return self._failed(f"{said} (the server asks to wait {after:.0f} s)")
        if status in _BUSY and after is not None:
            with self._lock:
                self._hold_until = max(self._hold_until, time.monotonic() + after)
        return _AgainError(said, after)

    def _unreachable(self, error: Exception) -> Exception:
        said = self._explain(str(error.__cause__ or error))
        with self._lock:
            self._refused += 1
            hopeless = not self._answered and self._refused >= self._patience_with_refusals
        if hopeless:
            return EndpointError(f"nothing answers at {self.address}: {said}")
        return _AgainError(f"no connection: {said}")

    def _failed(self, why: str) -> Exception:
        with self._lock:
            self._failed_in_a_row += 1
            row = self._failed_in_a_row
        if row >= IN_A_ROW:
            return EndpointError(
                f"{row} calls in a row failed at {self.address}, the last with: {why}. What was "
                "answered is kept; the same command goes on from here"
            )
        return CallFailedError(why)

    def _delay(self, state: RetryCallState) -> float:
        """Return the wait before the next try: what the server asked, else backoff; with jitter."""
        policy = self._policy
        error = state.outcome.exception() if state.outcome else None
        after = error.after if isinstance(error, _AgainError) else None
        if after is not None:
            return after + random.uniform(0, policy.first)
        widest = min(policy.longest, policy.first * 2 ** (state.attempt_number - 1))
        return random.uniform(widest / 2, widest)

    def _wait_for_the_server(self) -> None:
        with self._lock:
            left = self._hold_until - time.monotonic()
        if left > 0:
            self._sleep(left + random.uniform(0, self._policy.first))

    def _sleep(self, seconds: float) -> None:
        self._stopped.wait(seconds)


def retry_after(headers: Any) -> float | None:
    """Return how many seconds a reply asks to wait: `Retry-After` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) / unit)
    try:
        when = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())


def public_address(url: str) -> str:
    """Return `url` without user, password and query, fit to be written down."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _userinfo(url: str) -> list[str]:
    parts = urlsplit(url)
    return [s for s in (parts.password, parts.query) if s]


def _message(error: Any) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return str(getattr(error, "message", error))[:300]
