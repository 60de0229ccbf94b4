"""A simulator of learners, for comparing allocation rules."""
