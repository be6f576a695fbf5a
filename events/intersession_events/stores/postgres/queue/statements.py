"""The tables of the queue of calls, and the functions by which the log's writer and workers change it.

Those of workers run with the rights of the log's owner, so that a role can work that may call them and nothing else. Each looks
whose call it is: `session_user` is the role that has connected, whatever it has been made to be since.
"""

from typing import Final

REFUSED: Final = "IS003"
"""What a function raises that a worker may not call so."""

HAS_KEYS: Final = "SELECT set_config('intersession.has_keys', 'on', false)"
"""Says that the process behind a connection has the keys of the log (WORK-18)."""

_TABLES: Final = (
    # Its rows live for a call, and are written some times: room for that in their own page, and a vacuum soon.
    """CREATE TABLE IF NOT EXISTS {schema}.agent_calls (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
        attempt bigint NOT NULL, name text COLLATE "C" NOT NULL, stream text COLLATE "C" NOT NULL, version bigint NOT NULL,
        secret text NOT NULL, context_hash text NOT NULL, content bytea NOT NULL, deadline bigint,
        offered timestamptz NOT NULL DEFAULT clock_timestamp(), worker text COLLATE "C", role name, alive_until timestamptz,
        answer bytea, answered timestamptz, is_late boolean NOT NULL DEFAULT false, over timestamptz,
        UNIQUE (kind, id, attempt)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 1000, toast.autovacuum_vacuum_scale_factor = 0,
        toast.autovacuum_vacuum_threshold = 1000)""",
    # All but `take_calls` ask for calls that a worker has: thousands may wait. Renewals and answers leave it as it is.
    "CREATE INDEX IF NOT EXISTS agent_calls_taken ON {schema}.agent_calls (worker) WHERE worker IS NOT NULL",
    """CREATE TABLE IF NOT EXISTS {schema}.workers (
        name text COLLATE "C" PRIMARY KEY, role name NOT NULL, host text NOT NULL, version text NOT NULL,
        agents text[] NOT NULL, of_agents text[] NOT NULL, channels text[] NOT NULL, of_channels text[] NOT NULL,
        seats bigint NOT NULL, is_draining boolean NOT NULL, since timestamptz NOT NULL, alive_until timestamptz NOT NULL
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)""",
    """CREATE TABLE IF NOT EXISTS {schema}.worker_roles (
        role name PRIMARY KEY, agents text[] NOT NULL DEFAULT '{{}}', channels text[] NOT NULL DEFAULT '{{}}')""",
    # What the writer says to all workers: when a call is lost, and in which logs events were written, by position.
    """CREATE TABLE IF NOT EXISTS {schema}.work_settings (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), alive_s double precision NOT NULL DEFAULT 15,
        log_ids text[] NOT NULL DEFAULT '{{}}', positions bigint[] NOT NULL DEFAULT '{{}}')""",
    "INSERT INTO {schema}.work_settings DEFAULT VALUES ON CONFLICT DO NOTHING",
    "ALTER TABLE {schema}.work_settings ADD COLUMN IF NOT EXISTS is_sealed boolean NOT NULL DEFAULT false",
)

_OF_WRITER: Final = (
    # The fence: whoever takes the log over waits for this transaction.
    """CREATE OR REPLACE FUNCTION {schema}.check_epoch(of_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE now_at bigint;
    BEGIN
        SELECT epoch INTO now_at FROM {schema}.log_identity FOR SHARE;
        IF now_at IS DISTINCT FROM of_epoch THEN
            RAISE EXCEPTION USING ERRCODE = {other_epoch}, MESSAGE = coalesce(now_at, 0)::text;
        END IF;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.set_up_work(
        of_epoch bigint, of_alive double precision, of_log_ids text[], of_positions bigint[]
    ) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM {schema}.check_epoch(of_epoch);
        UPDATE {schema}.work_settings SET alive_s = of_alive, log_ids = of_log_ids, positions = of_positions;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.seal_work(of_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM {schema}.check_epoch(of_epoch);
        UPDATE {schema}.work_settings SET is_sealed = true;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.offer_calls(
        of_epoch bigint, kinds text[], ids text[], attempts bigint[], names text[], streams text[], versions bigint[],
        secrets text[], hashes text[], contents bytea[], deadlines bigint[]
    ) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM {schema}.check_epoch(of_epoch);
        INSERT INTO {schema}.agent_calls
            (kind, id, attempt, name, stream, version, secret, context_hash, content, deadline)
        SELECT kind, id, attempt, name, stream, version, secret, hash, content, nullif(deadline, -1)
        FROM unnest(kinds, ids, attempts, names, streams, versions, secrets, hashes, contents, deadlines) WITH ORDINALITY
            AS one (kind, id, attempt, name, stream, version, secret, hash, content, deadline, number)
        ORDER BY number
        ON CONFLICT DO NOTHING;
        PERFORM pg_notify({offers}, '');
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.withdraw_calls(
        of_epoch bigint, kinds text[], ids text[], attempts bigint[], forgotten_s double precision
    ) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM {schema}.check_epoch(of_epoch);
        -- Locked first, and in one order everywhere: one that is being taken just now is not deleted, but over.
        PERFORM 1 FROM {schema}.agent_calls JOIN unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            USING (kind, id, attempt) ORDER BY number FOR UPDATE OF agent_calls;
        DELETE FROM {schema}.agent_calls AS a USING unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            WHERE (a.kind, a.id, a.attempt) = (one.kind, one.id, one.attempt) AND worker IS NULL;
        UPDATE {schema}.agent_calls AS a SET over = coalesce(over, clock_timestamp())
            FROM unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            WHERE (a.kind, a.id, a.attempt) = (one.kind, one.id, one.attempt);
        -- Its worker has had the time to say late what came of it.
        DELETE FROM {schema}.agent_calls WHERE worker IS NOT NULL AND over < clock_timestamp() - make_interval(secs => forgotten_s);
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.extend_calls(
        of_epoch bigint, kinds text[], ids text[], attempts bigint[], for_s double precision
    ) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM {schema}.check_epoch(of_epoch);
        UPDATE {schema}.workers SET alive_until = clock_timestamp() + make_interval(secs => for_s);
        PERFORM 1 FROM {schema}.agent_calls JOIN unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            USING (kind, id, attempt) ORDER BY number FOR UPDATE OF agent_calls;
        UPDATE {schema}.agent_calls AS a SET alive_until = clock_timestamp() + make_interval(secs => for_s)
            FROM unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            WHERE (a.kind, a.id, a.attempt) = (one.kind, one.id, one.attempt)
                AND alive_until > '-infinity' AND answer IS NULL AND over IS NULL;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.drop_calls(of_epoch bigint, kinds text[], ids text[], attempts bigint[])
    RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM {schema}.check_epoch(of_epoch);
        -- Nobody waits for the disk: after a crash of the server the answer is there again, and is dropped again.
        PERFORM set_config('synchronous_commit', 'off', true);
        PERFORM 1 FROM {schema}.agent_calls JOIN unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            USING (kind, id, attempt) ORDER BY number FOR UPDATE OF agent_calls;
        DELETE FROM {schema}.agent_calls AS a USING unnest(kinds, ids, attempts) AS one (kind, id, attempt)
            WHERE (a.kind, a.id, a.attempt) = (one.kind, one.id, one.attempt);
    END $$""",
)

OWNERS: Final = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$"
"""How each function begins that runs with the owner's rights: no name in it means what the caller has made."""

_OF_WORKERS: Final = (
    """CREATE OR REPLACE FUNCTION {schema}.check_work(of_agents text[], of_channels text[]) RETURNS void {owners}
    DECLARE may {schema}.worker_roles%ROWTYPE;
    BEGIN
        -- Advice, and no lock: without the keys there is nothing to be read, and an answer would lie here in clear.
        IF (SELECT is_sealed FROM {schema}.work_settings) AND current_setting('intersession.has_keys', true) IS DISTINCT FROM 'on'
        THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = 'the log is kept encrypted, and a worker has no keys: '
                'it works through the gateway of the writer (--gateway in place of --store)';
        END IF;
        IF has_table_privilege(session_user, {calls}, 'DELETE') THEN
            RETURN; -- the log's owner, and its writer
        END IF;
        SELECT * INTO may FROM {schema}.worker_roles WHERE role = session_user;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = format(
                'role %s may take no calls: the log''s owner says in worker_roles which ones', session_user);
        END IF;
        IF NOT (of_agents <@ may.agents OR '*' = ANY (may.agents)) OR NOT (of_channels <@ may.channels OR '*' = ANY (may.channels))
        THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = format(
                'role %s may take calls of the agents %s and the channels %s alone, and asked for %s and %s: '
                'the log''s owner says in worker_roles which ones', session_user, may.agents, may.channels, of_agents, of_channels);
        END IF;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.announce_worker(
        of_worker text, of_host text, of_version text, new_agents text[], new_of_agents text[], new_channels text[],
        new_of_channels text[], new_seats bigint, drains boolean, forgotten_s double precision
    ) RETURNS boolean {owners}
    DECLARE
        before {schema}.workers%ROWTYPE;
        until timestamptz := clock_timestamp() + make_interval(secs => (SELECT alive_s FROM {schema}.work_settings));
        is_same boolean;
    BEGIN
        PERFORM {schema}.check_work(new_agents, new_channels);
        IF cardinality(new_agents || new_channels) > 2000 OR length(of_worker || of_host || of_version) > 768 OR
            length(array_to_string(new_of_agents || new_of_channels, '')) > 4000000 OR
            length(array_to_string(new_agents || new_channels, '')) > 512000
        THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = 'a worker says too much of itself';
        END IF;
        DELETE FROM {schema}.workers WHERE alive_until < clock_timestamp() - make_interval(secs => forgotten_s);
        SELECT * INTO before FROM {schema}.workers WHERE name = of_worker FOR UPDATE;
        IF before.role <> session_user AND before.alive_until > clock_timestamp() THEN
            RAISE EXCEPTION USING ERRCODE = {refused},
                MESSAGE = format('a worker of another role has the name %s: give this one another', of_worker);
        END IF;
        IF before.name IS NULL AND (SELECT count(*) FROM {schema}.workers WHERE role = session_user) >= {most_workers} THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = format(
                'there are %s workers of this role already, or were in the last hour: give each more seats', {most_workers});
        END IF;
        is_same := before.alive_until > clock_timestamp()
            AND (before.host, before.version, before.agents, before.of_agents, before.channels, before.of_channels, before.seats,
                before.is_draining)
            = (of_host, of_version, new_agents, new_of_agents, new_channels, new_of_channels, new_seats, drains);
        INSERT INTO {schema}.workers AS w VALUES (of_worker, session_user, of_host, of_version, new_agents, new_of_agents,
            new_channels, new_of_channels, new_seats, drains, clock_timestamp(), until)
        ON CONFLICT (name) DO UPDATE SET role = excluded.role, host = excluded.host, version = excluded.version,
            agents = excluded.agents, of_agents = excluded.of_agents, channels = excluded.channels,
            of_channels = excluded.of_channels, seats = excluded.seats, is_draining = excluded.is_draining,
            since = CASE WHEN w.alive_until > clock_timestamp() THEN w.since ELSE excluded.since END,
            alive_until = excluded.alive_until;
        IF is_same IS NOT TRUE THEN
            PERFORM pg_notify({answers}, '');
        END IF;
        RETURN is_same IS NOT TRUE;
    END $$""",
    # In the order of the index: a plan that sorts all that wait takes a hundred times as long.
    """CREATE OR REPLACE FUNCTION {schema}.take_calls(of_worker text, most bigint) RETURNS TABLE (
        kind text, id text, attempt bigint, name text, stream text, version bigint, secret text, context_hash text, content bytea,
        deadline bigint
    ) SET enable_bitmapscan = off SET enable_sort = off {owners}
    #variable_conflict use_column
    DECLARE mine {schema}.workers%ROWTYPE;
    BEGIN
        SELECT * INTO mine FROM {schema}.workers AS w WHERE w.name = of_worker AND w.role = session_user;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = {refused},
                MESSAGE = format('no worker %s is announced by this role: announce it, and then take', of_worker);
        END IF;
        PERFORM {schema}.check_work(mine.agents, mine.channels); -- what it may do can have changed since
        IF mine.is_draining THEN
            RETURN;
        END IF;
        RETURN QUERY WITH next AS MATERIALIZED (
            SELECT c.number FROM {schema}.agent_calls AS c
            WHERE c.worker IS NULL AND c.over IS NULL
                AND c.name = ANY (CASE c.kind WHEN 'agent' THEN mine.agents ELSE mine.channels END)
            ORDER BY c.number LIMIT least(most, 1000) FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE {schema}.agent_calls AS c SET worker = of_worker, role = session_user, alive_until =
                clock_timestamp() + make_interval(secs => (SELECT alive_s FROM {schema}.work_settings))
            FROM next WHERE c.number = next.number RETURNING c.*
        )
        SELECT t.kind, t.id, t.attempt, t.name, t.stream, t.version, t.secret, t.context_hash, t.content, t.deadline
        FROM taken AS t ORDER BY t.number;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.renew_calls(of_worker text, kinds text[], ids text[], attempts bigint[])
    RETURNS TABLE (lost bigint, of_alive double precision) {owners}
    DECLARE
        alive double precision := (SELECT alive_s FROM {schema}.work_settings);
        until timestamptz := clock_timestamp() + make_interval(secs => alive);
    BEGIN
        PERFORM {schema}.check_work('{{}}', '{{}}');
        PERFORM set_config('synchronous_commit', 'off', true); -- it is said again before it matters
        UPDATE {schema}.workers SET alive_until = until WHERE name = of_worker AND role = session_user;
        PERFORM 1 FROM {schema}.agent_calls WHERE worker = of_worker AND role = session_user ORDER BY number FOR UPDATE;
        RETURN QUERY WITH mine AS (
            SELECT * FROM unnest(kinds, ids, attempts) WITH ORDINALITY AS one (kind, id, attempt, place)
        ), kept AS (
            UPDATE {schema}.agent_calls AS c SET alive_until = until FROM mine
            WHERE (c.kind, c.id, c.attempt) = (mine.kind, mine.id, mine.attempt) AND c.worker = of_worker
                AND c.role = session_user AND c.alive_until > clock_timestamp() AND c.over IS NULL
            RETURNING mine.place
        )
        SELECT 0::bigint, alive UNION ALL SELECT place, alive FROM mine WHERE place NOT IN (SELECT place FROM kept);
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.answer_call(
        of_worker text, of_kind text, of_id text, of_attempt bigint, of_content bytea
    ) RETURNS boolean {owners}
    BEGIN
        PERFORM {schema}.check_work('{{}}', '{{}}');
        IF length(of_content) > {most_bytes} THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = format('an answer of %s bytes is too large', length(of_content));
        END IF;
        UPDATE {schema}.agent_calls SET answer = of_content, answered = clock_timestamp(),
            is_late = over IS NOT NULL OR alive_until <= clock_timestamp()
        WHERE (kind, id, attempt) = (of_kind, of_id, of_attempt) AND worker = of_worker AND role = session_user
            AND answer IS NULL;
        RETURN coalesce((SELECT answer = of_content AND NOT is_late FROM {schema}.agent_calls
            WHERE (kind, id, attempt) = (of_kind, of_id, of_attempt) AND worker = of_worker AND role = session_user), false);
    END $$""",
    # What was erased is proven by what authorises it.
    """CREATE OR REPLACE FUNCTION {schema}.events_of_call(
        of_worker text, of_kind text, of_id text, of_attempt bigint, of_erasures boolean, after bigint, most bigint
    ) RETURNS TABLE (place bigint, stream text, version bigint, topic text, state bytea) {owners}
    #variable_conflict use_column
    DECLARE mine {schema}.agent_calls%ROWTYPE;
    BEGIN
        PERFORM {schema}.check_work('{{}}', '{{}}');
        SELECT * INTO mine FROM {schema}.agent_calls AS c
        WHERE (c.kind, c.id, c.attempt) = (of_kind, of_id, of_attempt) AND c.worker = of_worker AND c.role = session_user
            AND c.alive_until > clock_timestamp() AND c.over IS NULL;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = {refused}, MESSAGE = format(
                '%s has no call %s %s, attempt %s: it is over, or lost to it', of_worker, of_kind, of_id, of_attempt);
        END IF;
        RETURN QUERY SELECT e.notification_id, e.originator_id, e.originator_version, e.topic, e.state
        FROM {schema}.stored_events AS e
        WHERE e.originator_id = CASE WHEN of_erasures THEN 'erased:' ELSE '' END || mine.stream
            AND e.originator_version > after AND (of_erasures OR e.originator_version <= mine.version)
        ORDER BY e.originator_version LIMIT most;
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.leave_work(of_worker text) RETURNS void {owners}
    BEGIN
        PERFORM {schema}.check_work('{{}}', '{{}}');
        DELETE FROM {schema}.workers WHERE name = of_worker AND role = session_user;
        PERFORM 1 FROM {schema}.agent_calls WHERE worker = of_worker AND role = session_user ORDER BY number FOR UPDATE;
        UPDATE {schema}.agent_calls SET alive_until = '-infinity'
            WHERE worker = of_worker AND role = session_user AND answer IS NULL;
        PERFORM pg_notify({answers}, '');
    END $$""",
    """CREATE OR REPLACE FUNCTION {schema}.work_place() RETURNS TABLE (
        gateway text, alive_s double precision, log_id text, log_ids text[], positions bigint[]
    ) {owners}
    #variable_conflict use_column
    BEGIN
        RETURN QUERY SELECT (SELECT w.gateway FROM {schema}.log_writer AS w WHERE w.alive_until > clock_timestamp()),
            s.alive_s, (SELECT i.log_id FROM {schema}.log_identity AS i), s.log_ids, s.positions FROM {schema}.work_settings AS s;
    END $$""",
)

WORKERS_FUNCTIONS: Final = (
    "announce_worker(text, text, text, text[], text[], text[], text[], bigint, boolean, double precision)",
    "take_calls(text, bigint)",
    "renew_calls(text, text[], text[], bigint[])",
    "answer_call(text, text, text, bigint, bytea)",
    "events_of_call(text, text, text, bigint, boolean, bigint, bigint)",
    "leave_work(text)",
    "work_place()",
)
"""What the role of a worker calls."""

WORK: Final = (
    *_TABLES,
    *_OF_WRITER,
    *_OF_WORKERS,
    *(
        f"REVOKE ALL ON FUNCTION {{schema}}.{one} FROM PUBLIC"
        for one in (*WORKERS_FUNCTIONS, "check_work(text[], text[])")
    ),
)
"""The statements that make all of it, or make it as this version has it."""


def offers_channel(schema: str) -> str:
    """Return the channel on which workers hear that there may be something to take."""
    return f"{schema}.offers"


def answers_channel(schema: str) -> str:
    """Return the channel on which the writer hears of answers and of workers."""
    return f"{schema}.answers"
