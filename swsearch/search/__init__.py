"""The search: its options, the steps from a query to ranked hits, and the exact top N."""
