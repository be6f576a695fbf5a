"""The view of words: what was said anywhere, found by the words of it. It follows the log in its own time (FIND-1)."""

from intersession_projections.full_text.found import Found, Wanted
from intersession_projections.full_text.index import FullText
from intersession_projections.full_text.said import message_of, texts_of_event, texts_of_message
from intersession_projections.full_text.scan import Scan
from intersession_projections.full_text.tokens import (
    Term,
    holds,
    is_unspaced,
    snippet,
    terms,
    terms_asked,
    words_in_order,
)
from intersession_projections.full_text.view import FullTextView, Redact, events_of, private_of, shown_of

__all__ = [
    "Found",
    "FullText",
    "FullTextView",
    "Redact",
    "Scan",
    "Term",
    "Wanted",
    "events_of",
    "holds",
    "is_unspaced",
    "message_of",
    "private_of",
    "shown_of",
    "snippet",
    "terms",
    "terms_asked",
    "texts_of_event",
    "texts_of_message",
    "words_in_order",
]
