"""Learners, one family a file."""
