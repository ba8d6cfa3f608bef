-- The tables of a store and the view blast6, for SQLite and PostgreSQL; tables.py has the types of the columns.

-- Alembic's version table, under a name that distinguishes a store from databases of other programs.
CREATE TABLE swsearch_schema (
    version_num VARCHAR(32) NOT NULL,
    PRIMARY KEY (version_num)
);

-- One run: all values of RunInfo (swsearch/hits/result.py), its times, its process and its shard.
--
-- parameters is a JSON object; database_paths and database_digests are JSON arrays, because a run may search
-- several databases as one.
CREATE TABLE runs (
    id SERIAL,
    state VARCHAR(16) NOT NULL,
    started_at TIME NOT NULL,
    finished_at TIME,
    host TEXT NOT NULL,
    process INT NOT NULL,
    command ESCAPED NOT NULL,
    parameters TEXT NOT NULL,
    matrix ESCAPED NOT NULL,
    matrix_scores ESCAPED NOT NULL,
    gap_open INT NOT NULL,
    gap_extend INT NOT NULL,
    lam DOUBLE,
    k DOUBLE,
    statistics ESCAPED NOT NULL,
    search_space BIGINT NOT NULL,
    database_paths TEXT NOT NULL,
    database_digests TEXT NOT NULL,
    database_generation BIGINT NOT NULL,
    database_alphabet ESCAPED NOT NULL,
    database_n_subjects BIGINT NOT NULL,
    database_n_residues BIGINT NOT NULL,
    program ESCAPED NOT NULL,
    engine ESCAPED NOT NULL,
    threads INT NOT NULL,
    process_began TEXT,
    shard_index INT,
    shard_count INT,
    asked_n_queries BIGINT,
    asked_digest VARCHAR(64),
    remark ESCAPED
);

-- The virtual counter of an owner: millions of cells that were searched for the owner, or forgone while idle.
CREATE TABLE owners (
    owner ESCAPED NOT NULL,
    served BIGINT NOT NULL,
    PRIMARY KEY (owner)
);

-- What an owner submitted on one day (UTC, YYYY-MM-DD).
CREATE TABLE usage (
    owner ESCAPED NOT NULL,
    day VARCHAR(10) NOT NULL,
    n_searches BIGINT NOT NULL,
    n_queries BIGINT NOT NULL,
    cells BIGINT NOT NULL,
    PRIMARY KEY (owner, day)
);

-- A worker process, how fast it searches, and when it was last alive.
CREATE TABLE workers (
    id VARCHAR(64) NOT NULL,
    host TEXT NOT NULL,
    process INT NOT NULL,
    process_began TEXT,
    engine TEXT NOT NULL,
    cells_per_second DOUBLE NOT NULL,
    started_at TIME NOT NULL,
    seen_at TIME NOT NULL,
    PRIMARY KEY (id)
);

-- A token of an owner; the token itself is not stored, only its SHA-256.
CREATE TABLE tokens (
    id VARCHAR(16) NOT NULL,
    owner ESCAPED NOT NULL,
    digest VARCHAR(64) NOT NULL,
    created_at TIME NOT NULL,
    revoked_at TIME,
    PRIMARY KEY (id),
    CONSTRAINT uq_tokens_digest UNIQUE (digest)
);

-- One query whose search is complete.
CREATE TABLE queries (
    id SERIAL,
    run_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    header ESCAPED NOT NULL,
    letters ESCAPED NOT NULL,
    n_hits BIGINT NOT NULL,
    n_passed BIGINT NOT NULL,
    cells BIGINT NOT NULL,
    score_seconds DOUBLE NOT NULL,
    total_seconds DOUBLE NOT NULL,
    n_rescored BIGINT NOT NULL,
    committed_at TIME NOT NULL,
    n_rounds INT NOT NULL,
    converged INT NOT NULL,
    pssm TEXT,
    identifier ESCAPED NOT NULL,
    CONSTRAINT uq_queries_run_number UNIQUE (run_id, number),
    CONSTRAINT fk_queries_run FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_queries_identifier ON queries USING HASH (identifier);

CREATE INDEX ix_queries_run_digest ON queries (run_id, digest);

-- One query that cannot be searched, and the reason. A query in neither queries nor failures is missing.
CREATE TABLE failures (
    run_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    reason ESCAPED NOT NULL,
    PRIMARY KEY (run_id, number),
    CONSTRAINT fk_failures_run FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

-- One search: who submitted it, what is searched, how far it is, and the run with its results.
--
-- n_hits is the number of stored alignments, so that the sum of an owner's is computed without reading runs.
CREATE TABLE searches (
    id SERIAL,
    "key" VARCHAR(32) NOT NULL,
    owner ESCAPED NOT NULL,
    database_name ESCAPED NOT NULL,
    database_digest VARCHAR(64) NOT NULL,
    database_generation BIGINT NOT NULL,
    options TEXT NOT NULL,
    fingerprint VARCHAR(64) NOT NULL,
    content VARCHAR(64) NOT NULL,
    asked_digest VARCHAR(64) NOT NULL,
    idempotency_key ESCAPED,
    state VARCHAR(16) NOT NULL,
    reason ESCAPED,
    created_at TIME NOT NULL,
    started_at TIME,
    finished_at TIME,
    expires_at TIME,
    run_id BIGINT,
    n_queries BIGINT NOT NULL,
    n_done BIGINT NOT NULL,
    n_failed BIGINT NOT NULL,
    cells BIGINT NOT NULL,
    cells_done BIGINT NOT NULL,
    n_hits BIGINT NOT NULL,
    served BIGINT NOT NULL,
    CONSTRAINT uq_searches_key UNIQUE ("key"),
    CONSTRAINT uq_searches_owner_idempotency_key UNIQUE (owner, idempotency_key),
    CONSTRAINT fk_searches_run FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_searches_state ON searches (state, owner);

CREATE INDEX ix_searches_content ON searches (content, state);

CREATE INDEX ix_searches_owner ON searches (owner, id);

CREATE INDEX ix_searches_run ON searches (run_id);

-- One alignment; its key is the rank of its subject and its own rank among the alignments of the subject.
--
-- The identifier of the subject is stored, although it is a part of the header: it ends at white space of any kind,
-- which no expression finds in both databases. On SQLite, an index on an expression took as long to write and to
-- read, and 8 % less space. In PostgreSQL the index is a hash, because a key of a B-tree has at most 2.7 kB.
CREATE TABLE hits (
    query_id BIGINT NOT NULL,
    rank BIGINT NOT NULL,
    hsp BIGINT NOT NULL,
    subject_index BIGINT NOT NULL,
    subject_header ESCAPED NOT NULL,
    subject_length BIGINT NOT NULL,
    score BIGINT NOT NULL,
    bits DOUBLE,
    evalue DOUBLE,
    strand VARCHAR(5) NOT NULL,
    query_start BIGINT NOT NULL,
    query_end BIGINT NOT NULL,
    subject_start BIGINT NOT NULL,
    subject_end BIGINT NOT NULL,
    cigar TEXT NOT NULL,
    identities BIGINT NOT NULL,
    positives BIGINT NOT NULL,
    columns BIGINT NOT NULL,
    gap_openings BIGINT NOT NULL,
    gap_residues BIGINT NOT NULL,
    subject_letters ESCAPED NOT NULL,
    query_letters ESCAPED NOT NULL,
    query_frame INT NOT NULL,
    subject_frame INT NOT NULL,
    round INT NOT NULL,
    subject_identifier ESCAPED NOT NULL,
    number BIGINT NOT NULL,
    masked_evalue DOUBLE,
    n_hsps BIGINT,
    forward_bits DOUBLE,
    PRIMARY KEY (query_id, rank, hsp),
    CONSTRAINT fk_hits_query FOREIGN KEY(query_id) REFERENCES queries (id) ON DELETE CASCADE
);

CREATE INDEX ix_hits_subject ON hits USING HASH (subject_identifier);

-- One query of an unfinished search: its letters, and the lease of the worker that searches it.
CREATE TABLE search_queries (
    search_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    header ESCAPED NOT NULL,
    letters ESCAPED NOT NULL,
    cells BIGINT NOT NULL,
    state VARCHAR(16) NOT NULL,
    lease_owner VARCHAR(64),
    lease_until TIME,
    losses INT NOT NULL,
    PRIMARY KEY (search_id, number),
    CONSTRAINT fk_search_queries_search FOREIGN KEY(search_id) REFERENCES searches (id) ON DELETE CASCADE
);

CREATE INDEX ix_search_queries_next ON search_queries (search_id, state, losses, number);

CREATE INDEX ix_search_queries_lease ON search_queries (lease_owner);

-- A link that shows one search to everybody who has it; its key is not stored, only the key's SHA-256.
CREATE TABLE links (
    id VARCHAR(16) NOT NULL,
    search_id BIGINT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    created_at TIME NOT NULL,
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
