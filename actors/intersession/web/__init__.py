"""The web debugger: its questions over HTTP, its pages, and a server of its own for a log that is only read. Needs the extra `web`."""

from intersession.web.access import ACCESS, Access, Question
from intersession.web.alone import Alone, told_live
from intersession.web.answers import HANDLERS, Application, declared, failed, told
from intersession.web.cookies import COOKIE, HEADER, cookie_in, cookie_of
from intersession.web.files import API, LOGIN, LOGOUT, file_at, is_static
from intersession.web.questions import routes
from intersession.web.rate import Rates

__all__ = [
    "ACCESS",
    "API",
    "COOKIE",
    "HANDLERS",
    "HEADER",
    "LOGIN",
    "LOGOUT",
    "Access",
    "Alone",
    "Application",
    "Question",
    "Rates",
    "cookie_in",
    "cookie_of",
    "declared",
    "failed",
    "file_at",
    "is_static",
    "routes",
    "told",
    "told_live",
]
