"""ONE HTML FILE that shows a plan: no network, no scripts from elsewhere, readable on paper."""

from planner.report.page.html import plan_page

__all__ = ["plan_page"]
