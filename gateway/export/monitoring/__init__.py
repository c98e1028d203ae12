"""The rules as a dashboard of Grafana and as alerts of Prometheus."""
