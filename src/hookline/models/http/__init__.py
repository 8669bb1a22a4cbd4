"""What the clients of all HTTP services share: connections, streaming, errors, settings and keys.

`services` has the table of services, `providers` makes models of them. The HTTP library is imported
with the first request, not before.
"""
