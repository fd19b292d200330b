-- The forms in which each item was seen, and whether somebody has approved of
-- them; a form is held until then. Times are unix ms. raw stands last: it is
-- read for one item at a time.
CREATE TABLE approvals (
	server     TEXT    NOT NULL,
	kind       TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	hash       TEXT    NOT NULL, -- of the form, in whatever way it is written
	raw_hash   TEXT    NOT NULL, -- hex SHA-256 of raw
	approved   INTEGER NOT NULL,
	who        TEXT    NOT NULL, -- approved it, '' while it is held
	seen_at    INTEGER NOT NULL, -- for the first time
	decided_at INTEGER NOT NULL, -- 0 while it is held
	raw        BLOB    NOT NULL,
	UNIQUE (server, kind, name, hash)
);

-- Items that must not be used in any form.
CREATE TABLE blocks (
	server TEXT    NOT NULL,
	kind   TEXT    NOT NULL,
	name   TEXT    NOT NULL,
	who    TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (server, kind, name)
) WITHOUT ROWID;

-- The lists of which the first reading was approved as a whole. What comes
-- later is judged by itself.
CREATE TABLE baselines (
	server TEXT    NOT NULL,
	kind   TEXT    NOT NULL,
	who    TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (server, kind)
) WITHOUT ROWID;

-- How a configuration file says that each of its servers is connected. target
-- is for people.
CREATE TABLE connections (
	config      TEXT    NOT NULL, -- path
	server      TEXT    NOT NULL,
	fingerprint TEXT    NOT NULL,
	target      TEXT    NOT NULL,
	seen_at     INTEGER NOT NULL,
	PRIMARY KEY (config, server)
) WITHOUT ROWID;

-- "approvals" changes with every change of approvals, blocks and baselines. It
-- starts at the time of creation, as "generation" does and for the same reason.
INSERT INTO state VALUES ('approvals', CAST(unixepoch('subsec') * 1000 AS INTEGER));
