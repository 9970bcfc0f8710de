"""What is said to SQLite: tables and statements."""

from __future__ import annotations

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE model (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, about BLOB NOT NULL);
CREATE TABLE decision (
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, version INTEGER NOT NULL, time REAL NOT NULL, deadline REAL,
    label INTEGER NOT NULL, greedy INTEGER NOT NULL, probability REAL NOT NULL, margin REAL, eligible BLOB,
    x BLOB NOT NULL, record BLOB, source TEXT, key TEXT
);
CREATE UNIQUE INDEX decision_key ON decision (model, key) WHERE key IS NOT NULL;
CREATE TABLE feedback (
    seq INTEGER PRIMARY KEY, time REAL NOT NULL, bit INTEGER NOT NULL, source TEXT,
    late INTEGER NOT NULL, usable INTEGER NOT NULL
);
CREATE TABLE audit (seq INTEGER PRIMARY KEY, time REAL NOT NULL, bit INTEGER NOT NULL, source TEXT);
CREATE TABLE applied (
    position INTEGER PRIMARY KEY, model INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, bit INTEGER
);
CREATE UNIQUE INDEX applied_once ON applied (seq, kind);
CREATE TABLE snapshot (
    model INTEGER NOT NULL, position INTEGER NOT NULL, seq INTEGER NOT NULL, content BLOB NOT NULL,
    sha256 BLOB NOT NULL, fingerprint TEXT NOT NULL, time REAL NOT NULL
);
CREATE TABLE source (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL, name TEXT NOT NULL, quarantined INTEGER NOT NULL,
    time REAL NOT NULL, reason TEXT NOT NULL, position INTEGER NOT NULL
);
CREATE INDEX source_last ON source (model, name, number);
CREATE TABLE token (name TEXT PRIMARY KEY, digest BLOB NOT NULL, scopes TEXT NOT NULL, models TEXT) WITHOUT ROWID;
"""
COLUMNS = (
    "decision.model, version, decision.time, coalesce(deadline, 9e999), label, greedy, probability, x, margin, "
    "eligible, record, decision.source, key, decision.seq"
)
KEY = f"SELECT {COLUMNS} FROM decision WHERE model = ? AND key = ?"
STATES = "SELECT position, seq, content, fingerprint, sha256 FROM snapshot WHERE model = ? ORDER BY rowid DESC"
FLAGS = "SELECT name, quarantined, time, reason, number, position FROM source WHERE model = ? ORDER BY number"
FLAGGED = """
SELECT name, quarantined, time, reason, number, position FROM source
WHERE number IN (SELECT max(number) FROM source WHERE model = ? GROUP BY name)
"""
SETTLE = """
SELECT decision.seq, applied.seq IS NOT NULL, feedback.bit, feedback.usable, feedback.late, coalesce((
    SELECT quarantined FROM source WHERE source.model = decision.model AND name = decision.source
    ORDER BY number DESC LIMIT 1), 0)
FROM decision LEFT JOIN feedback USING (seq)
LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
WHERE decision.seq IN (SELECT value FROM json_each(?))
"""
KNOWN = """
SELECT json_group_array(json_array(decision.seq, decision.model, feedback.seq IS NOT NULL, audit.seq IS NOT NULL,
    applied.seq IS NOT NULL))
FROM decision LEFT JOIN feedback USING (seq) LEFT JOIN audit USING (seq)
LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
WHERE decision.seq IN (SELECT value FROM json_each(?))
"""
"""Of decisions that exist: the model; whether there is a bit, an audit; whether it is settled. All in one value: the
interpreter's lock is let go once."""
LESSONS = f"""
SELECT {COLUMNS}, position, kind, applied.bit, feedback.late, feedback.source, feedback.time, audit.source, audit.time,
    (SELECT earlier.bit FROM applied AS earlier
     WHERE earlier.seq = applied.seq AND earlier.kind = 0 AND earlier.position < applied.position)
FROM (SELECT position, model AS m, seq, kind, bit FROM applied
      WHERE m = ? AND position > ? ORDER BY position LIMIT ?) AS applied
JOIN decision USING (seq) LEFT JOIN feedback USING (seq) LEFT JOIN audit USING (seq) ORDER BY position
"""
EXPORT = f"""
SELECT {COLUMNS}, applied.bit, CASE WHEN feedback.late = 0 THEN feedback.time END, audit.bit
FROM decision JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
LEFT JOIN feedback ON feedback.seq = decision.seq LEFT JOIN audit ON audit.seq = decision.seq
WHERE decision.model = ? AND decision.seq > ? AND applied.bit IS NOT NULL ORDER BY decision.seq LIMIT ?
"""
INSERTS = {
    "decision": "decision (model, version, time, deadline, label, greedy, probability, x, margin, eligible, record, "
    "source, key, seq)",
    "feedback": "feedback (seq, time, bit, source, late, usable)",
    "audit": "audit (seq, time, bit, source)",
    "applied": "applied (position, model, seq, kind, bit)",
}


_MADE: dict[tuple[str, int], str] = {}


def insert(table: str, width: int, size: int) -> str:
    """A statement that inserts so many rows into a table, all at once."""
    found = _MADE.get((table, size))
    if found is None:
        row = f"({', '.join('?' * width)})"
        found = _MADE[table, size] = f"INSERT INTO {INSERTS[table]} VALUES {', '.join([row] * size)}"
    return found
