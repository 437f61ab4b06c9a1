"""The embedded servers with what only tests ask of them: rights, logins, addresses that are refused, and Endpoints."""
