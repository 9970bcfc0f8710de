"""Learners, one family per file."""
