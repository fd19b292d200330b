-- Who runs. Times are unix ms. hub is the id of the hub an instance uses, ''
-- for none.
CREATE TABLE instances (
	id             TEXT PRIMARY KEY,
	kind           TEXT    NOT NULL, -- "client" or "hub"
	pid            INTEGER NOT NULL,
	build          TEXT    NOT NULL DEFAULT '',
	mode           TEXT    NOT NULL DEFAULT '',
	client         TEXT    NOT NULL DEFAULT '',
	client_version TEXT    NOT NULL DEFAULT '',
	socket         TEXT    NOT NULL DEFAULT '',
	hub            TEXT    NOT NULL DEFAULT '',
	started_at     INTEGER NOT NULL,
	seen_at        INTEGER NOT NULL
) WITHOUT ROWID;

-- Who may do what only one may do, and until when (unix ms).
CREATE TABLE leases (
	name       TEXT PRIMARY KEY,
	holder     TEXT    NOT NULL,
	expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The servers that run, by the instance that started them and its own name for
-- them: it may run one server several times, with different environments. Times
-- are unix ms.
CREATE TABLE processes (
	instance    TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	name        TEXT    NOT NULL,
	fingerprint TEXT    NOT NULL,
	audience    TEXT    NOT NULL,
	pid         INTEGER NOT NULL,
	users       INTEGER NOT NULL,
	started_at  INTEGER NOT NULL,
	PRIMARY KEY (instance, id)
) WITHOUT ROWID;
