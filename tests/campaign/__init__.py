"""Long-running tests: random pairs against other programs, kills, full disks, damage, signals. See `parts.py`."""
