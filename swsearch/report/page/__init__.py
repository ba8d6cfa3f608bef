"""The style sheet and the script that every ``html`` report carries within it."""
