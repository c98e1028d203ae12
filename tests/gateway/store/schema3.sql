CREATE TABLE usage (
    api TEXT NOT NULL,
    version TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    client TEXT,
    count INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    slack INTEGER NOT NULL,
    first REAL NOT NULL,
    last REAL NOT NULL,
    served REAL NOT NULL
);
CREATE UNIQUE INDEX usage_key ON usage (api, version, endpoint, ifnull(client, 0));
CREATE TABLE floors (
    api TEXT NOT NULL,
    version TEXT NOT NULL,
    floor INTEGER NOT NULL,
    PRIMARY KEY (api, version)
) WITHOUT ROWID;
CREATE TABLE counts (
    kind TEXT NOT NULL,
    labels TEXT NOT NULL,
    count INTEGER NOT NULL,
    first REAL NOT NULL,
    last REAL NOT NULL,
    PRIMARY KEY (kind, labels)
) WITHOUT ROWID;
CREATE TABLE documents (
    name TEXT PRIMARY KEY,
    document TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO usage VALUES ('a', '1', '/p', 'x', 2, 1, 0, 7, 1.0, 5.0, 5.0);
INSERT INTO usage VALUES ('a', '1', '/p', 'y', 2, 2, 1, 0, 1.0, 5.0, 0.0);
INSERT INTO usage VALUES ('a', '1', '/p', '', 3, 0, 0, 0, 1.5, 5.0, 5.0);
INSERT INTO usage VALUES ('a', '1', '/p', NULL, 9, 1, 0, 0, 1.0, 5.0, 5.0);
INSERT INTO floors VALUES ('a', '1', 7);
INSERT INTO counts VALUES ('differences', '["a","1","name"]', 3, 1.0, 5.0);
INSERT INTO documents VALUES ('since', '1.0');
INSERT INTO documents VALUES ('overrides', '{"paused":[["a","1"]]}');
PRAGMA application_id = 1986492275;
PRAGMA journal_mode = WAL;
