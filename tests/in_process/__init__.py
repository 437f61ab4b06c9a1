"""The adapters without sockets: each call goes straight to the function of an embedded server."""
