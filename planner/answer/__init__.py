"""THE WHOLE ANSWER: problem, menu, formulation, document and audit, put together."""
