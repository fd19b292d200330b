-- Agent tokens. What is kept of a secret is its HMAC under the key in the key
-- file. Times are unix ms, 0 for never.
CREATE TABLE tokens (
	name        TEXT PRIMARY KEY,
	mac         BLOB    NOT NULL UNIQUE,
	key_id      INTEGER NOT NULL, -- of the key that mac was made with
	servers     TEXT    NOT NULL, -- JSON list of names, or ["*"]
	tier        TEXT    NOT NULL, -- the highest: "read", "write" or "destructive"
	profile_pin TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	issued_at   INTEGER NOT NULL, -- when the secret was made
	expires_at  INTEGER NOT NULL,
	revoked_at  INTEGER NOT NULL DEFAULT 0,
	used_at     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- "tokens" changes with every change of tokens but used_at. It is random, so
-- that no two histories, one of them from a backup perhaps, come to the same
-- number with different tokens.
INSERT INTO state VALUES ('tokens', random());
CREATE TRIGGER token_added AFTER INSERT ON tokens BEGIN
	UPDATE state SET value = random() WHERE key = 'tokens';
END;
CREATE TRIGGER token_deleted AFTER DELETE ON tokens BEGIN
	UPDATE state SET value = random() WHERE key = 'tokens';
END;
CREATE TRIGGER token_changed
AFTER UPDATE OF name, mac, key_id, servers, tier, profile_pin, created_at, issued_at, expires_at, revoked_at ON tokens BEGIN
	UPDATE state SET value = random() WHERE key = 'tokens';
END;
