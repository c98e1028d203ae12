"""The client's side of the proxy: connections accepted, requests read, responses written."""
