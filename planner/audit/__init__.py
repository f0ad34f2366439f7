"""THE AUDITOR: recomputes every plan by its own code; imports neither solve nor candidates."""
