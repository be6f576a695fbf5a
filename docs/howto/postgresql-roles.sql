-- Three roles for one log: who owns its tables and makes them, who writes, and who only reads.
--
-- Make the roles first, with passwords or certificates of your own. Run this before the log is made, and once more after
-- its owner has made it; as often as you like, as a superuser or as the owner itself, which at first needs CREATE on the
-- database, unless somebody has made the schema for it:
--
--   psql -v schema=audit -v owner=bots_owner -v writer=bots_writer -v reader=bots_reader -f postgresql-roles.sql bots

\set ON_ERROR_STOP on
BEGIN;
-- Who owns a schema need not be allowed to make one.
SELECT to_regnamespace(quote_ident(:'schema')) IS NULL AS missing \gset
\if :missing
CREATE SCHEMA :"schema" AUTHORIZATION :"owner";
\endif
REVOKE ALL ON SCHEMA :"schema" FROM PUBLIC;
GRANT USAGE ON SCHEMA :"schema" TO :"writer", :"reader";
-- What the owner makes from now on, among it the tables of views that a later version has:
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT SELECT ON TABLES TO :"writer", :"reader";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT INSERT, UPDATE, DELETE ON TABLES TO :"writer";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT EXECUTE ON FUNCTIONS TO :"writer";
SELECT current_setting('server_version_num')::int >= 170000 AS maintains \gset
SELECT to_regclass(format('%I.stored_events', :'schema')) IS NOT NULL AS made \gset
\if :made
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"writer", :"reader";
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA :"schema" TO :"writer";
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :"schema" TO :"writer";
-- Events are added. Nothing of them is ever changed but what was said in them, where it is erased; none is taken away.
REVOKE UPDATE, DELETE ON :"schema".stored_events FROM :"writer";
GRANT UPDATE (state) ON :"schema".stored_events TO :"writer";
REVOKE INSERT, UPDATE, DELETE ON :"schema".log_identity FROM :"writer";
GRANT UPDATE (epoch) ON :"schema".log_identity TO :"writer";
REVOKE INSERT, DELETE ON :"schema".log_head, :"schema".log_writer FROM :"writer";
REVOKE UPDATE, DELETE ON :"schema".log_topics FROM :"writer";
-- Which workers there may be is the owner's to say.
REVOKE INSERT, UPDATE, DELETE ON :"schema".worker_roles FROM :"writer";
-- By the secret of a call a worker acts in it: a reader sees all of a call but that.
REVOKE SELECT ON :"schema".agent_calls FROM :"reader";
GRANT SELECT (number, kind, id, attempt, name, stream, version, context_hash, content, deadline, offered, worker, role,
  alive_until, answer, answered, is_late, over) ON :"schema".agent_calls TO :"reader";
-- Doors read, and say that they are there. What stands in this table is shown, and nothing follows from it.
GRANT INSERT, UPDATE, DELETE ON :"schema".log_hosts TO :"reader";
\if :maintains
-- Behind an erasure, tables are written anew (VACUUM); before PostgreSQL 17 their owner alone may.
GRANT MAINTAIN ON ALL TABLES IN SCHEMA :"schema" TO :"writer";
\endif
\endif
COMMIT;
