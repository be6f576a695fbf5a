"""What the web debugger's pages ask of a log: each question is a route."""

from intersession.web.questions.table import routes

__all__ = ["routes"]
