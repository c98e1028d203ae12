"""The files that `export` writes for Kubernetes, Grafana and Prometheus."""
