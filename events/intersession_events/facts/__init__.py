"""Facts: every event that can have happened, the shapes they are made of, and the registry of their stored names."""

from intersession_events.facts.access import *
from intersession_events.facts.base import *
from intersession_events.facts.delivery import *
from intersession_events.facts.exchange import *
from intersession_events.facts.log import *
from intersession_events.facts.message import *
from intersession_events.facts.message_words import *
from intersession_events.facts.parts import *
from intersession_events.facts.reasons import *
from intersession_events.facts.registry import *
from intersession_events.facts.run import *
from intersession_events.facts.schedule import *
from intersession_events.facts.session import *
from intersession_events.facts.spawn import *
from intersession_events.facts.without_words import *
from intersession_events.facts.words import *
