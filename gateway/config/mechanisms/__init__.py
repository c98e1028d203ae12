"""The mechanisms by which a request names a version, as gateway.yaml declares them."""
