-- A role for workers of a log (docs/howto/workers.md): it takes and answers calls of some agents and channels, and reads the
-- sessions of these calls while it has them. It can do nothing else, and sees no table.
--
-- Make the role first, with a password or a certificate of its own. Run this as the log's owner, once that has opened the log:
--
--   psql -v schema=audit -v worker=bots_research -v agents='{research}' -v channels='{}' -f postgresql-worker.sql bots
--
-- `{*}` stands for all agents, or all channels. To change what it may have, run it again. To lock it out:
--
--   DELETE FROM audit.worker_roles WHERE role = 'bots_research';

\set ON_ERROR_STOP on
BEGIN;
GRANT USAGE ON SCHEMA :"schema" TO :"worker";
GRANT EXECUTE ON FUNCTION
    :"schema".announce_worker(text, text, text, text[], text[], text[], text[], bigint, boolean, double precision),
    :"schema".take_calls(text, bigint),
    :"schema".renew_calls(text, text[], text[], bigint[]),
    :"schema".answer_call(text, text, text, bigint, bytea),
    :"schema".events_of_call(text, text, text, bigint, boolean, bigint, bigint),
    :"schema".leave_work(text),
    :"schema".work_place()
    TO :"worker";
INSERT INTO :"schema".worker_roles VALUES (:'worker', :'agents', :'channels')
    ON CONFLICT (role) DO UPDATE SET agents = excluded.agents, channels = excluded.channels;
COMMIT;
