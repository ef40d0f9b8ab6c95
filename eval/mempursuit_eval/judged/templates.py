"""Prompts as template files: the shipped ones, or the user's with their placeholders checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta
from jinja2.sandbox import SandboxedEnvironment

ANSWER = frozenset({"question", "reference_date", "memories"})
JUDGE = frozenset({"question", "gold_answer", "generated_answer"})
OPTIONAL = {ANSWER: frozenset[str](), JUDGE: frozenset({"guidance"})}

_SHIPPED = {"answer": ANSWER, "judge": JUDGE, "rubric": JUDGE}
# Prompts are plain text, so nothing is escaped; values are inserted and never read as templates.
_JINJA = SandboxedEnvironment(autoescape=False, undefined=StrictUndefined)


class PromptError(ValueError):
    """A prompt file that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Prompt:
    """A template of a prompt.

    Attributes:
        name: where it comes from, for the manifest: "shipped:judge" or the file's name.
        text: the template itself.
    """

    name: str
    text: str
    _template: Template = field(repr=False, compare=False)

    def render(self, **values: str) -> str:
        """Return the prompt with its placeholders filled."""
        return self._template.render(**values)

    @property
    def sha256(self) -> str:
        """Of the template's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def shipped_prompt(name: str) -> Prompt:
    """Return the template that ships as `name`: answer, judge or rubric."""
    text = (files(__package__) / "prompts" / f"{name}.j2").read_text(encoding="utf-8")
    return _prompt(f"shipped:{name}", text, _SHIPPED[name], f"the shipped prompt {name}")


def prompt_from(path: Path, needed: frozenset[str], option: str) -> Prompt:
    """Read the user's template at `path`; `needed` is ANSWER or JUDGE.

    Raises:
        PromptError: it cannot be read, is no template, lacks a placeholder, or has an unknown one.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{option}: {path} cannot be read: {error}") from None
    return _prompt(path.name, text, needed, f"{option}: {path}")


def _prompt(name: str, text: str, needed: frozenset[str], where: str) -> Prompt:
    try:
        found = meta.find_undeclared_variables(_JINJA.parse(text))
        template = _JINJA.from_string(text)
    except TemplateSyntaxError as error:
        raise PromptError(f"{where}, line {error.lineno}: {error.message}") from None
    if missing := sorted(needed - found):
        wanted = ", ".join(f"{{{{ {name} }}}}" for name in missing)
        raise PromptError(f"{where} lacks the placeholder {wanted}")
    if unknown := sorted(found - needed - OPTIONAL[needed]):
        raise PromptError(
            f"{where} has the unknown placeholder {', '.join(unknown)}; "
            f"known are {', '.join(sorted(needed | OPTIONAL[needed]))}"
        )
    return Prompt(name, text, template)
