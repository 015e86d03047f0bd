"""The suite against itself: every fault is killed, no sound function is accused."""
