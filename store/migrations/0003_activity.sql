-- One row per call, refusal or change. seq is the order in which they were
-- written, id that in which they began. Times are unix ms, durations
-- microseconds. The long columns stand last: a query that does not want them
-- does not read them. size is what the row takes in the file, in bytes.
CREATE TABLE activity (
	seq            INTEGER PRIMARY KEY,
	id             TEXT    NOT NULL UNIQUE,
	at             INTEGER NOT NULL,
	size           INTEGER NOT NULL,
	kind           TEXT    NOT NULL,
	server         TEXT    NOT NULL,
	tool           TEXT    NOT NULL,
	status         TEXT    NOT NULL,
	duration       INTEGER NOT NULL,
	request_bytes  INTEGER NOT NULL,
	response_bytes INTEGER NOT NULL,
	caller         TEXT    NOT NULL,
	token          TEXT    NOT NULL,
	client         TEXT    NOT NULL,
	parent_id      TEXT    NOT NULL,
	detail         TEXT    NOT NULL, -- the other texts, as a JSON object
	request        TEXT    NOT NULL,
	response       TEXT    NOT NULL
);

-- What the log holds, so that nobody counts it, and the seq given out last,
-- which is never given out again.
CREATE TABLE activity_total (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	last    INTEGER NOT NULL,
	records INTEGER NOT NULL,
	bytes   INTEGER NOT NULL
);
INSERT INTO activity_total VALUES (1, 0, 0, 0);
