"""Single questions that a call of a tool answers, and what answers are right."""
