"""What is said to PostgreSQL: tables and statements. Many rows go into one statement, as one array per column."""

from __future__ import annotations

FORMAT = 2
TABLES = """
CREATE TABLE meta (name text PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE office (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), epoch bigint NOT NULL, holder text, since timestamptz
);
INSERT INTO office (epoch) VALUES (0);
CREATE SEQUENCE decision_number;
CREATE SEQUENCE process_number;
CREATE TABLE model (
    number integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name text UNIQUE NOT NULL, about bytea NOT NULL
);
CREATE TABLE decision (
    seq bigint PRIMARY KEY, model integer NOT NULL, version bigint NOT NULL, time float8 NOT NULL,
    deadline float8 NOT NULL, label integer NOT NULL, greedy integer NOT NULL, probability float8 NOT NULL,
    x bytea NOT NULL, margin float8, eligible bytea, record bytea, source text, key text
);
CREATE UNIQUE INDEX decision_key ON decision (model, key) WHERE key IS NOT NULL;
CREATE TABLE feedback (
    seq bigint PRIMARY KEY, time float8 NOT NULL, bit integer NOT NULL, source text, late boolean NOT NULL,
    usable boolean NOT NULL
);
CREATE TABLE audit (seq bigint PRIMARY KEY, time float8 NOT NULL, bit integer NOT NULL, source text);
CREATE TABLE applied (
    model integer, position bigint, seq bigint NOT NULL, kind integer NOT NULL, bit integer,
    epoch bigint NOT NULL, PRIMARY KEY (model, position), UNIQUE (seq, kind)
);
CREATE TABLE inbox (
    seq bigint, kind integer, model integer NOT NULL, due float8 NOT NULL, PRIMARY KEY (seq, kind)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX inbox_due ON inbox (model, due, seq, kind);
CREATE TABLE state (
    number bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, model integer NOT NULL, position bigint NOT NULL,
    seq bigint NOT NULL, content bytea NOT NULL, sha256 bytea NOT NULL, fingerprint text NOT NULL, time float8 NOT NULL,
    epoch bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100, toast.autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 10000);
ALTER TABLE state ALTER content SET STORAGE EXTERNAL;
CREATE INDEX state_newest ON state (model, number);
CREATE TABLE source (
    number bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, model integer NOT NULL, name text NOT NULL,
    quarantined boolean NOT NULL, time float8 NOT NULL, reason text NOT NULL
);
CREATE INDEX source_last ON source (model, name, number);
CREATE TABLE token (name text PRIMARY KEY, digest bytea NOT NULL, scopes text NOT NULL, models text);
"""
"""`office` has one row: the epoch grows with every election. `state` is not compressed: weights hardly shrink."""
_QUARANTINED = """coalesce((
    SELECT quarantined FROM source WHERE source.model = decision.model AND name = decision.source
    ORDER BY number DESC LIMIT 1), false)"""
_NOW = "extract(epoch FROM statement_timestamp())::float8"  # the server's clock, which all processes share
COLUMNS = (
    "decision.model, version, decision.time, deadline, label, greedy, probability, x, margin, eligible, record, "
    "decision.source, key, decision.seq"
)
DECIDE = f"""
WITH given AS MATERIALIZED (
    SELECT nextval('decision_number') AS seq, * FROM unnest(
        %b::integer[], %b::bigint[], %b::float8[], %b::float8[], %b::integer[], %b::integer[], %b::float8[],
        %b::bytea[], %b::float8[], %b::bytea[], %b::bytea[], %b::text[], %b::text[]
    ) AS g (model, version, time, deadline, label, greedy, probability, x, margin, eligible, record, source, key)
), put AS (
    INSERT INTO decision (
        seq, model, version, time, deadline, label, greedy, probability, x, margin, eligible, record, source, key
    ) SELECT * FROM given ORDER BY key NULLS FIRST, seq ON CONFLICT DO NOTHING RETURNING seq, model
), noted AS (
    INSERT INTO inbox (seq, kind, model, due) SELECT seq, 2, model, {_NOW} FROM put
)
SELECT given.seq, put.seq IS NOT NULL FROM given LEFT JOIN put USING (seq) ORDER BY given.seq
"""
"""Number decisions in their order, and write those whose key is free: in the order of keys, lest two processes with
the same keys wait for each other."""
KEYS = f"""
SELECT {COLUMNS} FROM decision JOIN unnest(%b::integer[], %b::text[]) AS g (model, key)
ON decision.model = g.model AND decision.key = g.key
""".replace(" key, decision.seq", " decision.key, decision.seq")
HOLD = "SELECT seq FROM inbox WHERE seq = ANY(%b::bigint[]) AND kind IN (2, 3) ORDER BY seq FOR KEY SHARE"
"""Whoever settles these decisions waits for us, or we for him."""
KNOWN = f"""
SELECT decision.seq, decision.model, feedback.seq IS NOT NULL, audit.seq IS NOT NULL, applied.seq IS NOT NULL, deadline,
    decision.source, {_QUARANTINED}
FROM decision LEFT JOIN feedback USING (seq) LEFT JOIN audit USING (seq)
LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
WHERE decision.seq = ANY(%b::bigint[])
"""
_HEARD = """
WITH given AS (
    SELECT * FROM unnest(
        %b::bigint[], %b::float8[], %b::integer[], %b::text[], %b::boolean[], %b::boolean[], %b::integer[],
        %b::integer[]
    ) AS g (seq, time, bit, source, late, usable, model, kind)
), put AS (
    INSERT INTO {table} SELECT {columns} FROM given ORDER BY seq ON CONFLICT DO NOTHING RETURNING seq
), noted AS (
    INSERT INTO inbox (seq, kind, model, due) SELECT seq, kind, model, {now} FROM given JOIN put USING (seq)
    WHERE kind >= 0
)
SELECT seq FROM put
"""
HEAR = _HEARD.format(table="feedback", columns="seq, time, bit, source, late, usable", now=_NOW)
AUDIT = _HEARD.format(table="audit", columns="seq, time, bit, source", now=_NOW)
LAST = "SELECT coalesce(max(position), 0) FROM applied WHERE model = %s"
APPLY = """
INSERT INTO applied (model, epoch, position, seq, kind, bit)
SELECT %s::integer, %s::bigint, * FROM unnest(%b::bigint[], %b::bigint[], %b::integer[], %b::integer[])
"""
SETTLED = "DELETE FROM inbox WHERE seq = ANY(%b::bigint[]) AND kind IN (2, 3)"
HEARD = f"""
SELECT decision.seq, applied.seq IS NOT NULL, feedback.bit, usable, late, {_QUARANTINED}
FROM decision LEFT JOIN feedback USING (seq)
LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
WHERE decision.seq = ANY(%b::bigint[])
"""
STATES = "SELECT position, seq, content, fingerprint, sha256 FROM state WHERE model = ? ORDER BY number DESC"
NEWEST = """
SELECT number, position, seq, content, fingerprint, sha256 FROM state WHERE model = ? AND number > ?
ORDER BY number DESC LIMIT 1
"""
KEEP = """
INSERT INTO state (model, position, seq, content, sha256, fingerprint, time, epoch)
VALUES (%s, %s, %s, %b, %b, %s, %s, %s)
"""
FORGET = """
DELETE FROM state WHERE model = %s AND number <> (SELECT min(number) FROM state WHERE model = %s)
AND number < (SELECT number FROM state WHERE model = %s ORDER BY number DESC OFFSET 1 LIMIT 1)
"""
"""The first one of a model stays, and the last two."""
FLAG = """
INSERT INTO source (model, name, quarantined, time, reason) VALUES (%s, %s, %s, %s, %s) RETURNING number
"""
FLAGS = "SELECT name, quarantined, time, reason, number FROM source WHERE model = ? ORDER BY number"
FLAGGED = """
SELECT DISTINCT ON (name) name, quarantined, time, reason, number FROM source WHERE model = ?
ORDER BY name, number DESC
"""
CLAIM = f"""
SELECT seq, kind FROM inbox WHERE model = %s AND due <= {_NOW} ORDER BY due, seq, kind LIMIT %s FOR UPDATE SKIP LOCKED
"""
FACTS = f"""
SELECT {COLUMNS}, feedback.time, feedback.bit, feedback.source, late, usable, audit.time, audit.bit, audit.source,
    applied.bit, applied.seq IS NOT NULL
FROM decision LEFT JOIN feedback USING (seq) LEFT JOIN audit USING (seq)
LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0 WHERE decision.seq = ANY(%b::bigint[])
"""
DONE = """
DELETE FROM inbox USING unnest(%b::bigint[], %b::integer[]) AS g (seq, kind)
WHERE inbox.seq = g.seq AND inbox.kind = g.kind
"""
WAIT = """
UPDATE inbox SET kind = 3, due = g.due FROM unnest(%b::bigint[], %b::float8[]) AS g (seq, due)
WHERE inbox.seq = g.seq AND inbox.kind = 2
"""
LESSONS = f"""
SELECT {COLUMNS}, position, kind, steps.bit, late, feedback.source, feedback.time, audit.source, audit.time,
    (SELECT earlier.bit FROM applied AS earlier
     WHERE earlier.seq = steps.seq AND earlier.kind = 0 AND earlier.position < steps.position)
FROM (SELECT * FROM applied WHERE model = ? AND position > ? ORDER BY position LIMIT ?) AS steps
JOIN decision USING (seq) LEFT JOIN feedback USING (seq) LEFT JOIN audit USING (seq) ORDER BY position
"""
EXPORT = f"""
SELECT {COLUMNS}, applied.bit, CASE WHEN late = false THEN feedback.time END, audit.bit
FROM decision JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
LEFT JOIN feedback ON feedback.seq = decision.seq LEFT JOIN audit ON audit.seq = decision.seq
WHERE decision.model = ? AND decision.seq > ? AND applied.bit IS NOT NULL ORDER BY decision.seq LIMIT ?
"""
TOKEN = """
INSERT INTO token VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET
digest = excluded.digest, scopes = excluded.scopes, models = excluded.models
"""
SIZES = """
SELECT name, pg_total_relation_size(name::regclass)
FROM unnest(ARRAY['decision', 'feedback', 'applied', 'inbox', 'state']) AS name
"""
