"""Logs: tables of rounds in files."""

from fliptron.logs.tables import read_log, write_log

__all__ = ["read_log", "write_log"]
