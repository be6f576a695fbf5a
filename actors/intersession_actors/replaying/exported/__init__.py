"""A run outside of its log: its recording in a file, and the test that replays it."""

from intersession_actors.replaying.exported.as_test import name_of_test, text_of_test
from intersession_actors.replaying.exported.kept import Kept, Line, line_of, lines_of, recorded_in

__all__ = ["Kept", "Line", "line_of", "lines_of", "name_of_test", "recorded_in", "text_of_test"]
