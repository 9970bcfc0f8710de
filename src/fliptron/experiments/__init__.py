"""Experiments: which learners, on what, how often."""
