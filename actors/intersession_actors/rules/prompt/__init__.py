"""An agent's input from its session: the transcript, fenced and in its model's format, and the instructions."""
