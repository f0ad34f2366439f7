"""THE ANSWER: shapes, placements, status and bound, and the plan as a document."""
