"""What was told whom, from what was recorded of it: the commands of people, agents, channels and timers, and of a start. The replayer feeds them."""

from intersession_actors.replaying.feeding.fed import ToFlow, ToSession
from intersession_actors.replaying.feeding.led_to import command_for
from intersession_actors.replaying.feeding.starts import goes_on

__all__ = ["ToFlow", "ToSession", "command_for", "goes_on"]
