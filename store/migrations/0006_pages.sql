-- Results that were too long to be sent whole. Times are unix ms.
CREATE TABLE pages (
	id         INTEGER PRIMARY KEY, -- rises with each page
	key        BLOB    NOT NULL UNIQUE,
	head       TEXT    NOT NULL, -- the writer's own words about it
	size       INTEGER NOT NULL, -- bytes that it takes in the file, roughly
	expires_at INTEGER NOT NULL
);

-- What is asked of every page at each write.
CREATE INDEX pages_expiry ON pages (expires_at, size);

-- What was in them, in pieces of moderate size, so that reading a little costs
-- little. body stands last: looking for first does not read it.
CREATE TABLE page_parts (
	id    INTEGER PRIMARY KEY,
	page  INTEGER NOT NULL,
	first INTEGER NOT NULL, -- the offset at which it begins, in the writer's unit
	body  BLOB    NOT NULL
);

CREATE UNIQUE INDEX page_parts_first ON page_parts (page, first);
