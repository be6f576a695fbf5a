"""The web debugger: its questions over HTTP, its pages, and a server of its own for a log that is only read. Needs the extra `web`."""

from intersession.web.access import ACCESS, Question
from intersession.web.alone import Alone, Coming, Deed
from intersession.web.answers import HANDLERS, Application, declared, failed, told
from intersession.web.cookies import HEADER, Halves, cookie_of, halves_in
from intersession.web.files import API, LOGIN, LOGOUT, file_at, is_static
from intersession.web.happened import ForksBeside, ForksFolder, StoreNews, all_news, told_erased, told_live
from intersession.web.questions import routes
from intersession.web.rate import Rates
from intersession.web.stopping import ended_well, server_stops
from intersession.web.streams import EVENT_STREAM, After, LastEventId, begun_behind, stream_of, streamed

__all__ = [
    "ACCESS",
    "API",
    "EVENT_STREAM",
    "HANDLERS",
    "HEADER",
    "LOGIN",
    "LOGOUT",
    "After",
    "Alone",
    "Application",
    "Coming",
    "Deed",
    "ForksBeside",
    "ForksFolder",
    "Halves",
    "LastEventId",
    "Question",
    "Rates",
    "StoreNews",
    "all_news",
    "begun_behind",
    "cookie_of",
    "declared",
    "ended_well",
    "failed",
    "file_at",
    "halves_in",
    "is_static",
    "routes",
    "server_stops",
    "stream_of",
    "streamed",
    "told",
    "told_erased",
    "told_live",
]
