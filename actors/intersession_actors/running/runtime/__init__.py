"""How actors run: the actor and its inbox, two runtimes, threads, the clock and the timers."""
