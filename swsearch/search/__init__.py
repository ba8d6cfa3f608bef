"""A search put together: options, the exact top N, and the steps from query to ranked hits."""
