-- One row for each migration that was applied.
CREATE TABLE schema (
	version    INTEGER PRIMARY KEY,
	name       TEXT    NOT NULL,
	applied_at INTEGER NOT NULL -- unix ms
);

-- Single numbers. "generation" changes with every change of items. It starts
-- at the time of creation, so that a file that was lost and made anew does not
-- count through numbers that are already the names of index folders.
CREATE TABLE state (
	key   TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO state VALUES ('generation', CAST(unixepoch('subsec') * 1000 AS INTEGER));

-- What is known of a server under one configuration and one set of announced
-- client capabilities. Times are unix ms, 0 for never.
CREATE TABLE servers (
	id                INTEGER PRIMARY KEY,
	name              TEXT NOT NULL,
	fingerprint       TEXT NOT NULL,
	audience          TEXT NOT NULL,
	state             TEXT NOT NULL DEFAULT '',
	last_error        TEXT NOT NULL DEFAULT '',
	protocol          TEXT NOT NULL DEFAULT '',
	era               TEXT NOT NULL DEFAULT '',
	capabilities      BLOB,
	server_info       BLOB,
	instructions      TEXT NOT NULL DEFAULT '',
	tools             INTEGER NOT NULL DEFAULT 0,
	resources         INTEGER NOT NULL DEFAULT 0,
	templates         INTEGER NOT NULL DEFAULT 0,
	prompts           INTEGER NOT NULL DEFAULT 0,
	generation        INTEGER NOT NULL DEFAULT 0,
	attempted_at      INTEGER NOT NULL DEFAULT 0,
	connected_at      INTEGER NOT NULL DEFAULT 0,
	listed_at         INTEGER NOT NULL DEFAULT 0,
	failures          INTEGER NOT NULL DEFAULT 0,
	next_attempt_at   INTEGER NOT NULL DEFAULT 0,
	restart_wanted_at INTEGER NOT NULL DEFAULT 0,
	touched_at        INTEGER NOT NULL,
	UNIQUE (name, fingerprint, audience)
);

-- What the servers offer, byte for byte.
CREATE TABLE items (
	server_id INTEGER NOT NULL REFERENCES servers (id),
	kind      TEXT    NOT NULL,
	position  INTEGER NOT NULL,
	name      TEXT    NOT NULL,
	raw       BLOB    NOT NULL,
	hash      TEXT    NOT NULL, -- hex SHA-256 of raw
	UNIQUE (server_id, kind, position)
);

-- Replies that were rendered before. The rowid tells their age: it grows with
-- every write.
CREATE TABLE lists (
	key        TEXT PRIMARY KEY,
	body       BLOB    NOT NULL,
	written_at INTEGER NOT NULL
);
