"""How statements and values go to PostgreSQL and come from there, by libpq itself.

Statements go one behind the other, each prepared once, without a wait for each answer: psycopg's own way, which finds out anew what
each parameter is, takes eight times the processor's time. Texts stand among bytes, and sums are whole numbers, as SQLite has them.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Sequence
from itertools import count
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.abc import Transformer as TransformerProtocol
from psycopg.adapt import Dumper, Loader, Transformer
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow
from psycopg.types.numeric import NumericBinaryLoader
from psycopg.types.string import StrDumperUnknown
from psycopg.waiting import Ready, Wait, wait

from intersession_events.log.sql import ID_TEXT, IdText
from intersession_events.stores.folding.fold import ClearRow

Prepared = OrderedDict[tuple[bytes, tuple[int, ...]], bytes]
"""The names under which a connection has prepared statements, by their text and the types of their parameters."""

_MOST_PREPARED: Final = 200
"""The number of statements that stay prepared on a connection: the latest ones."""
_NUMBERS: Final = count(1)
"""No name comes twice: what one stood for may be forgotten on one side alone."""
_PREPARED: Final[WeakKeyDictionary[Connection[Any], Prepared]] = WeakKeyDictionary()  # of any rows
_MARK: Final = re.compile(rb"%[%s]")
_LOOKING_S: Final = 0.1
"""How often a waiting caller checks whether it was interrupted."""
_SAID: Final = 200
"""The length of a statement in the note of its error."""
_DONE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})


class _IdTextDumper(Dumper):
    """Puts a text into a column of bytes, behind what no id of a UUID's length begins with."""

    format = Format.BINARY
    oid = 17  # bytea

    def dump(self, obj: IdText) -> Buffer:
        return ID_TEXT + obj.encode()


_NUL: Final = "\ufdd0"
"""What stands for the one character that PostgreSQL has in no text: no character, so none of anybody's."""
_NUL_BYTES: Final = _NUL.encode()


class _TextDumper(StrDumperUnknown):
    """Takes any text: what holds a NUL can be asked for, and stand in a view."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", _NUL) if "\0" in obj else obj)


class _TextLoader(Loader):
    """Returns a text as it was given."""

    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        raw = bytes(data)
        return raw.replace(_NUL_BYTES, b"\0").decode() if _NUL_BYTES in raw else raw.decode()


class _WholeLoader(NumericBinaryLoader):
    """Returns whole numbers as such: a sum of big integers is a numeric."""

    def load(self, data: Buffer) -> Any:  # an int where it is one, else the Decimal
        found = super().load(data)
        return int(found) if found == found.to_integral_value() else found


def adapt(connection: Connection[Any]) -> None:  # whatever its rows are
    """Make a connection take and give values as SQLite does."""
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_loader("text", _TextLoader)
    connection.adapters.register_dumper(IdText, _IdTextDumper)
    connection.adapters.register_loader("numeric", _WholeLoader)


NUMBER: Final = 20
TEXT: Final = 25
BYTE_STRING: Final = 17
REAL: Final = 701
TEXTS: Final = 1009
NUMBERS: Final = 1016
BYTES: Final = 1001
TRUTH: Final = 16
"""What PostgreSQL calls these types and arrays of them."""

_NUMBER: Final = Struct("!q").pack
_REAL: Final = Struct("!d").pack
_ARRAY: Final = Struct("!iiIii").pack
_SIZE: Final = Struct("!i").pack


def number(value: int) -> bytes:
    """Return a whole number as a parameter in binary."""
    return _NUMBER(value)


def truth(value: bool) -> bytes:
    """Return a boolean as a parameter in binary."""
    return b"\1" if value else b"\0"


def numbers(values: Iterable[int]) -> bytes:
    """Return whole numbers as an array in binary."""
    return _array(NUMBER, [_NUMBER(value) for value in values])


def texts(values: Iterable[str]) -> bytes:
    """Return texts as an array in binary."""
    return _array(TEXT, [value.encode() for value in values])


def byte_strings(values: Sequence[bytes]) -> bytes:
    """Return byte strings as an array in binary."""
    return _array(BYTE_STRING, values)


def typed_value(value: Any) -> tuple[int, bytes | None]:  # what a column takes
    """Return PostgreSQL's type of a parameter, 0 where the statement gives it, and the value in binary.

    Raises:
        TypeError: no column takes such a value.
    """
    kind: type[object] = value.__class__
    if kind is int:
        return NUMBER, _NUMBER(value)
    if kind is str:
        return TEXT, (value.replace("\0", _NUL) if "\0" in value else value).encode()
    if kind is bytes:
        return BYTE_STRING, value
    if value is None:
        return 0, None
    if kind is IdText:
        return BYTE_STRING, ID_TEXT + value.encode()
    if kind is list:
        first: type[object] = value[0].__class__ if value else str
        if first is int:
            return NUMBERS, numbers(value)
        return (BYTES, byte_strings(value)) if first is bytes else (TEXTS, texts(value))
    if kind is float:
        return REAL, _REAL(value)
    if kind is bool:
        return TRUTH, truth(value)
    raise TypeError(f"no column takes {value!r}")


def _array(of: int, values: Sequence[bytes]) -> bytes:
    """Return an array of one dimension, without nulls: psycopg's own way takes ten times as long."""
    parts = [_ARRAY(1, 0, of, len(values), 1)]
    for value in values:
        parts += (_SIZE(len(value)), value)
    return b"".join(parts)


def forget(connection: Connection[Any]) -> None:  # whatever its rows are
    """Hear that the server has dropped all prepared statements."""
    _PREPARED[connection].clear()


class Answer:
    """The result of a statement, once it has arrived."""

    __slots__ = ("result", "statement")

    def __init__(self, statement: bytes = b"") -> None:
        self.result: PGresult | None = None
        self.statement = statement
        """What was asked, with marks for its parameters."""


class _Refused(NamedTuple):
    """The first result that is an error, and which answer it is in the place of."""

    result: PGresult
    answer: Answer


class Pipeline:
    """The statements of one transaction on a connection. No other code uses the connection, except between two `wait`."""

    def __init__(
        self,
        connection: Connection[Any],  # whatever its rows are
        clear: ClearRow | None = None,
    ) -> None:
        self._connection = connection
        self._clear = clear
        self._to = connection.pgconn
        self._known = _PREPARED.setdefault(connection, OrderedDict())
        self._coming: deque[Answer] = deque()
        self._loading: TransformerProtocol | None = None
        self.failed_at: Answer | None = None
        """In whose place an error came."""

    def send(self, statement: bytes, parameters: Sequence[Any] = ()) -> Answer:  # what a column takes
        """Send one of our statements, with `%s` for each parameter; its answer is there after `wait`."""
        types: list[int] = []
        values: list[bytes | None] = []
        for value in parameters:
            kind, raw = typed_value(value)
            types.append(kind)
            values.append(raw)
        return self.send_encoded(statement, types, values)

    def send_encoded(
        self, statement: bytes, types: Sequence[int], values: Sequence[bytes | None], *, name: bytes = b"ours"
    ) -> Answer:
        """Send a statement with encoded parameters; `name` begins the name of the prepared statement."""
        to = self._to
        if to.pipeline_status == PipelineStatus.OFF:
            to.enter_pipeline_mode()
        known = self._known.get(key := (statement, tuple(types)))
        if known is not None:
            self._known.move_to_end(key)
        else:
            if len(self._known) >= _MOST_PREPARED:
                _, oldest = self._known.popitem(last=False)
                self.send_once(b"DEALLOCATE " + oldest)
            known = self._known[key] = b"%s_%d" % (name, next(_NUMBERS))
            to.send_prepare(known, _numbered(statement), types)
            self._coming.append(Answer(statement))
        to.send_query_prepared(known, values, [Format.BINARY] * len(values), Format.BINARY)
        self._coming.append(answer := Answer(statement))
        return answer

    def send_once(self, statement: bytes) -> Answer:
        """Send a statement without parameters that is unlikely to be repeated."""
        if self._to.pipeline_status == PipelineStatus.OFF:
            self._to.enter_pipeline_mode()
        self._to.send_query_params(statement, None, result_format=Format.BINARY)
        self._coming.append(answer := Answer(statement))
        return answer

    def wait(self) -> None:
        """Wait until every answer is there.

        Raises:
            psycopg.Error: one of the statements was refused, and those behind it were not done; or the connection is lost.
        """
        if not self._coming:
            return
        self._to.pipeline_sync()
        try:
            refused = wait(self._answers(), self._to.socket, interval=_LOOKING_S)
        except psycopg.Error:
            raise
        except BaseException:  # interrupted: what is still to come may never be there
            self._connection.close()
            raise
        self._to.exit_pipeline_mode()
        if refused is not None:
            self._known.clear()  # what stood behind it was not prepared
            self.failed_at = refused.answer
            error = error_of(refused.result)
            if said := refused.answer.statement.decode(errors="replace"):
                error.add_note(f"in {said if len(said) <= _SAID else f'{said[:_SAID]}…'}")
            raise error

    def leave(self) -> None:
        """Discard everything that is on its way, after an error."""
        forget(self._connection)
        if self._to.status != ConnStatus.OK:
            return
        if self._coming:
            self._to.pipeline_sync()
            wait(self._answers(), self._to.socket, interval=_LOOKING_S)
        if self._to.pipeline_status != PipelineStatus.OFF:
            self._to.exit_pipeline_mode()

    def rows(self, answer: Answer) -> list[TupleRow]:
        """Return the rows of a statement; waits for them if necessary."""
        if answer.result is None:
            self.wait()
        result = answer.result
        if result is None or result.status != ExecStatus.TUPLES_OK:
            return []
        if self._loading is None:
            self._loading = Transformer(self._connection)
        self._loading.set_pgresult(result, format=Format.BINARY)
        rows = self._loading.load_rows(0, result.ntuples, tuple)
        return rows if self._clear is None else [self._clear(self, row) for row in rows]

    def _answers(self) -> Generator[Wait, Ready | int, _Refused | None]:
        """Read all answers up to the end of the sent statements; return the first error."""
        to, coming = self._to, self._coming
        refused: _Refused | None = None
        left = to.flush()
        while True:
            ready = yield Wait.RW if left else Wait.R
            if ready & Ready.R:
                to.consume_input()
                while not to.is_busy():
                    result = to.get_result()
                    if result is None:
                        if to.status != ConnStatus.OK or not (coming or refused):
                            raise psycopg.OperationalError(to.get_error_message())
                        if coming:
                            coming.popleft()
                    elif result.status == ExecStatus.PIPELINE_SYNC:
                        return refused
                    else:
                        # Behind the last answer the server commits what is a transaction of its own, and may refuse that.
                        answer = coming[0] if coming else Answer()
                        answer.result = result
                        if refused is None and result.status not in _DONE:
                            refused = _Refused(result, answer)
            if ready & Ready.W:
                left = to.flush()


def error_of(result: PGresult) -> psycopg.Error:
    """Return the exception for an error result."""
    if (
        result.error_field(DiagnosticField.SQLSTATE) is None
    ):  # libpq's own words: the server says nothing any more
        return psycopg.OperationalError(result.get_error_message())
    return psycopg.errors.error_from_result(result)


def _numbered(statement: bytes) -> bytes:
    """Return a statement with its parameters as libpq has them, and `%%` as `%`."""
    numbers = count(1)
    return _MARK.sub(lambda found: b"%" if found[0] == b"%%" else b"$%d" % next(numbers), statement)
