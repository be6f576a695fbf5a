"""How a command gets at a log: it reads it, becomes its writer, or asks the gateway of the process that writes it."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession.cli.host.asked import Asked, asks
    from intersession.cli.host.beside import (
        TOKEN_VARIABLE,
        WayBeside,
        host_beside,
        import_beside,
        known_token,
    )
    from intersession.cli.host.forking import forker_of, forking_beside
    from intersession.cli.host.forks import fork_file, in_fork
    from intersession.cli.host.hosting import hosted
    from intersession.cli.host.log_host import GatewayBeside, HostedHere
    from intersession.cli.host.operating import Operating, operator_of
    from intersession.cli.host.reading import (
        acting_as,
        folding,
        reader_of,
        reading_log,
        store_of,
        store_url,
    )
    from intersession.cli.host.sending import Sending

__all__ = [
    "TOKEN_VARIABLE",
    "Asked",
    "GatewayBeside",
    "HostedHere",
    "Operating",
    "Sending",
    "WayBeside",
    "acting_as",
    "asks",
    "folding",
    "fork_file",
    "forker_of",
    "forking_beside",
    "host_beside",
    "hosted",
    "import_beside",
    "in_fork",
    "known_token",
    "operator_of",
    "reader_of",
    "reading_log",
    "store_of",
    "store_url",
]
