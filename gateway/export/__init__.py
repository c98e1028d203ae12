"""Export: the rules as configuration of other programs, for Envoy and for Kubernetes; all pure.

What another proxy serves exactly as the gateway does goes straight to its service. Everything else
goes to the gateway, in case of doubt too, so that which version is served never differs.
"""
