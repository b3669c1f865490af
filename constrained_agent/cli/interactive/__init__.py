"""The conversation on a terminal: `run` without a task.

The model and its tools work in the main thread, as in every run. The person's lines are read in a thread of their own
and put into one queue, which the main thread looks into where it can: between answers, at a question, between tasks.
"""
