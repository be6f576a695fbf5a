"""What an operator's command changes: through the process that writes the log, else on the log itself, as its writer."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from intersession.cli.host.beside import host_beside
from intersession.cli.host.hosting import hosted
from intersession.cli.host.reading import reader_of
from intersession.cli.shell import Reading
from intersession_actors.service import Reader
from intersession_actors.system import followed
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonMapping, JsonObject


class Operating(NamedTuple):
    """A log, and who changes it. `call` calls a method of the system; what it refuses is raised as `ToolRefused`."""

    reader: Reader
    call: Callable[[str, JsonMapping], JsonObject]
    here: bool
    """Whether this command is the log's host, so that what is begun ends with it."""

    def events(self, after: int, *, quiet_s: float) -> Iterator[Recorded]:
        """Iterate over the events behind a position, until nothing came for this many seconds."""
        return followed(self.reader.log, after, timeout=quiet_s)


@contextmanager
def operator_of(reading: Reading, *, agents: str | None = None) -> Generator[Operating]:
    """Be the operator of a log, as `send` is: where it has a host that can be asked, that one does what is asked for.

    `agents` names who answers here; then this command is the host, whatever there is.

    Raises:
        StoreLocked: its host can't be asked.
        UsageError: what `agents` names is not there.
        NoSuchStore: there is no log; none is made.
    """
    with reader_of(reading) as reader:
        beside = host_beside(reading) if agents is None else None
        if beside is not None:
            with beside:
                yield Operating(reader, beside.call, here=False)
            return
    with hosted(reading, agents=agents, config=reading.config) as system:
        yield Operating(system.service.reader, system.gateway.perform, here=True)
