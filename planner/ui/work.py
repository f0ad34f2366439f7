"""One question, answered in a process of its own: what the desk starts, and ends when a newer question comes."""

from __future__ import annotations

from collections.abc import Iterable
from multiprocessing.connection import Connection

# Loaded once by the server that processes are forked from, so that a question pays for none of it.
from planner.answer.answering import Options, answer_loaded
from planner.diagnostics import Diagnostic, PlannerError
from planner.report.page.html import plan_body
from planner.ui.question import Question, Reply
from planner.whatif.patching import open_base, patched
from planner.whatif.scenarios import Scenario


def reply_to(question: Question) -> Reply:
    """Answer a question as `planner solve` would answer the changed problem."""
    try:
        base = open_base(question.problem, question.overrides)
        loaded = patched(base, Scenario("", question.changes)) if question.changes else base.loaded
        found = answer_loaded(loaded, Options(time_limit=question.time_limit))
    except PlannerError as error:
        return Reply(None, "", _lines(error.diagnostics))
    if found.audit_errors:
        return Reply(None, "", ("the audit rejected the plan, which is therefore not shown", *_lines(found.audit_errors)))
    warnings = _lines(item for item in found.warnings if item.severity.value == "warning")
    return Reply(found.plan.model_dump_json(), plan_body(found.plan, audited=True, warnings=warnings))


def _lines(diagnostics: Iterable[Diagnostic]) -> tuple[str, ...]:
    return tuple(map(str, diagnostics))


def work(question: Question, connection: Connection) -> None:
    """Body of the process: answer, send, end. Whatever goes wrong is sent as a sentence."""
    try:
        reply = reply_to(question)
    except Exception as error:  # noqa: BLE001 - the page shows a sentence, never nothing
        reply = Reply(None, "", (f"internal error: {type(error).__name__}: {error}",))
    connection.send(reply)
    connection.close()
