"""The file of a log as the machine has it: its one name, its inode, and whether it is still where it was."""
