"""Protocols that clients of other search services already speak, each behind a switch (`swsearch serve --protocol`).

A protocol is a router of its own: it translates the requests of its clients into submissions, and states and reports
into the answers that they expect, errors included. Everything else is the service's: jobs, owners, limits, reports.
"""
