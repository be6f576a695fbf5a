"""The file of a log as the machine has it: its one name, its inode, and whether it is still where it was."""

from intersession_events.stores.file.held import FileUse, HeldFile, keep_open
from intersession_events.stores.file.names import check_one_name
from intersession_events.stores.file.presence import Presence, inode_of

__all__ = ["FileUse", "HeldFile", "Presence", "check_one_name", "inode_of", "keep_open"]
