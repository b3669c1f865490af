"""Tasks, arms and reports of the before/after comparison."""
