"""What an agent is given of its session: the transcript, fenced and in its model's format, and the instructions."""
