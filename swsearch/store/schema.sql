-- The tables of a store in SQLite, as SQLAlchemy writes those of models.py, and the view blast6, also for PostgreSQL.
CREATE TABLE swsearch_schema (
    version_num VARCHAR(32) NOT NULL,
    PRIMARY KEY (version_num)
);

CREATE TABLE runs (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    state VARCHAR(16) NOT NULL,
    started_at DATETIME NOT NULL,
    finished_at DATETIME,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    command TEXT NOT NULL,
    parameters TEXT NOT NULL,
    matrix TEXT NOT NULL,
    matrix_scores TEXT NOT NULL,
    gap_open INTEGER NOT NULL,
    gap_extend INTEGER NOT NULL,
    lam DOUBLE,
    k DOUBLE,
    statistics TEXT NOT NULL,
    search_space INTEGER NOT NULL,
    database_paths TEXT NOT NULL,
    database_digests TEXT NOT NULL,
    database_generation INTEGER NOT NULL,
    database_alphabet TEXT NOT NULL,
    database_n_subjects INTEGER NOT NULL,
    database_n_residues INTEGER NOT NULL,
    program TEXT NOT NULL,
    engine TEXT NOT NULL,
    threads INTEGER NOT NULL,
    process_began TEXT,
    shard_index INTEGER,
    shard_count INTEGER,
    asked_n_queries INTEGER,
    asked_digest VARCHAR(64),
    remark TEXT
);

CREATE TABLE owners (
    owner TEXT NOT NULL,
    served INTEGER NOT NULL,
    PRIMARY KEY (owner)
);

CREATE TABLE usage (
    owner TEXT NOT NULL,
    day VARCHAR(10) NOT NULL,
    n_searches INTEGER NOT NULL,
    n_queries INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    PRIMARY KEY (owner, day)
);

CREATE TABLE workers (
    id VARCHAR(64) NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    process_began TEXT,
    engine TEXT NOT NULL,
    cells_per_second DOUBLE NOT NULL,
    started_at DATETIME NOT NULL,
    seen_at DATETIME NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE tokens (
    id VARCHAR(16) NOT NULL,
    owner TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    created_at DATETIME NOT NULL,
    revoked_at DATETIME,
    PRIMARY KEY (id),
    CONSTRAINT uq_tokens_digest UNIQUE (digest)
);

CREATE TABLE queries (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    header TEXT NOT NULL,
    letters TEXT NOT NULL,
    n_hits INTEGER NOT NULL,
    n_passed INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    score_seconds DOUBLE NOT NULL,
    total_seconds DOUBLE NOT NULL,
    n_rescored INTEGER NOT NULL,
    committed_at DATETIME NOT NULL,
    n_rounds INTEGER NOT NULL,
    converged INTEGER NOT NULL,
    pssm TEXT,
    identifier TEXT NOT NULL,
    CONSTRAINT uq_queries_run_number UNIQUE (run_id, number),
    CONSTRAINT fk_queries_run FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_queries_identifier ON queries (identifier);

CREATE INDEX ix_queries_run_digest ON queries (run_id, digest);

CREATE TABLE failures (
    run_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (run_id, number),
    CONSTRAINT fk_failures_run FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE TABLE searches (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "key" VARCHAR(32) NOT NULL,
    owner TEXT NOT NULL,
    database_name TEXT NOT NULL,
    database_digest VARCHAR(64) NOT NULL,
    database_generation INTEGER NOT NULL,
    options TEXT NOT NULL,
    fingerprint VARCHAR(64) NOT NULL,
    content VARCHAR(64) NOT NULL,
    asked_digest VARCHAR(64) NOT NULL,
    idempotency_key TEXT,
    state VARCHAR(16) NOT NULL,
    reason TEXT,
    created_at DATETIME NOT NULL,
    started_at DATETIME,
    finished_at DATETIME,
    expires_at DATETIME,
    run_id INTEGER,
    n_queries INTEGER NOT NULL,
    n_done INTEGER NOT NULL,
    n_failed INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    cells_done INTEGER NOT NULL,
    n_hits INTEGER NOT NULL,
    served INTEGER NOT NULL,
    CONSTRAINT uq_searches_key UNIQUE ("key"),
    CONSTRAINT uq_searches_owner_idempotency_key UNIQUE (owner, idempotency_key),
    CONSTRAINT fk_searches_run FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_searches_state ON searches (state, owner);

CREATE INDEX ix_searches_content ON searches (content, state);

CREATE INDEX ix_searches_owner ON searches (owner, id);

CREATE INDEX ix_searches_run ON searches (run_id);

CREATE TABLE hits (
    query_id INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    hsp INTEGER NOT NULL,
    subject_index INTEGER NOT NULL,
    subject_header TEXT NOT NULL,
    subject_length INTEGER NOT NULL,
    score INTEGER NOT NULL,
    bits DOUBLE,
    evalue DOUBLE,
    strand VARCHAR(5) NOT NULL,
    query_start INTEGER NOT NULL,
    query_end INTEGER NOT NULL,
    subject_start INTEGER NOT NULL,
    subject_end INTEGER NOT NULL,
    cigar TEXT NOT NULL,
    identities INTEGER NOT NULL,
    positives INTEGER NOT NULL,
    columns INTEGER NOT NULL,
    gap_openings INTEGER NOT NULL,
    gap_residues INTEGER NOT NULL,
    subject_letters TEXT NOT NULL,
    query_letters TEXT NOT NULL,
    query_frame INTEGER NOT NULL,
    subject_frame INTEGER NOT NULL,
    round INTEGER NOT NULL,
    subject_identifier TEXT NOT NULL,
    number INTEGER NOT NULL,
    masked_evalue DOUBLE,
    n_hsps INTEGER,
    forward_bits DOUBLE,
    PRIMARY KEY (query_id, rank, hsp),
    CONSTRAINT fk_hits_query FOREIGN KEY(query_id) REFERENCES queries (id) ON DELETE CASCADE
);

CREATE INDEX ix_hits_subject ON hits (subject_identifier);

CREATE TABLE search_queries (
    search_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    header TEXT NOT NULL,
    letters TEXT NOT NULL,
    cells INTEGER NOT NULL,
    state VARCHAR(16) NOT NULL,
    lease_owner VARCHAR(64),
    lease_until DATETIME,
    losses INTEGER NOT NULL,
    PRIMARY KEY (search_id, number),
    CONSTRAINT fk_search_queries_search FOREIGN KEY(search_id) REFERENCES searches (id) ON DELETE CASCADE
);

CREATE INDEX ix_search_queries_next ON search_queries (search_id, state, losses, number);

CREATE INDEX ix_search_queries_lease ON search_queries (lease_owner);

CREATE TABLE links (
    id VARCHAR(16) NOT NULL,
    search_id INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT uq_links_digest UNIQUE (digest),
    CONSTRAINT fk_links_search FOREIGN KEY(search_id) REFERENCES searches (id) ON DELETE CASCADE
);

CREATE INDEX ix_links_search ON links (search_id);

-- The hits as rows of BLAST's tables: the twelve columns of blast6, others by BLAST's names, and the keys.
-- Coordinates are 1-based and inclusive, as in swsearch/report/fields.py; pident, evalue and bitscore are not rounded.
-- Percent identity is computed and not stored: a condition on it took as long.
CREATE VIEW blast6 AS
SELECT
    q.identifier AS qaccver,
    h.subject_identifier AS saccver,
    CASE WHEN h.columns = 0 THEN 0 ELSE 100 * CAST(h.identities AS DOUBLE PRECISION) / h.columns END AS pident,
    h.columns AS length,
    h.columns - h.identities - h.gap_residues AS mismatch,
    h.gap_openings AS gapopen,
    CASE WHEN h.query_frame < 0 THEN h.query_end ELSE h.query_start + 1 END AS qstart,
    CASE WHEN h.query_frame < 0 THEN h.query_start + 1 ELSE h.query_end END AS qend,
    CASE WHEN h.subject_frame < 0 OR h.strand = 'minus' AND h.query_frame = 0
        THEN h.subject_end ELSE h.subject_start + 1 END AS sstart,
    CASE WHEN h.subject_frame < 0 OR h.strand = 'minus' AND h.query_frame = 0
        THEN h.subject_start + 1 ELSE h.subject_end END AS send,
    h.evalue AS evalue,
    h.bits AS bitscore,
    h.score AS score,
    length(q.letters) AS qlen,
    h.subject_length AS slen,
    h.subject_header AS stitle,
    q.run_id AS run_id,
    q.id AS query_id,
    q.number AS query_number,
    h.rank AS rank,
    h.hsp AS hsp
FROM hits AS h JOIN queries AS q ON q.id = h.query_id;
