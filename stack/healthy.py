"""The health check of containers: exits with 0 if the program on a local port is ready.

python healthy.py [PORT]: without PORT, the admin port of the gateway.
"""

import http.client
import os
import ssl
import sys


def main(host: str, port: int) -> int:
    """Request /readyz; return the exit status, 0 if the program is ready."""
    # Like the probes of Kubernetes, it accepts any certificate if the admin port has TLS.
    context = ssl._create_unverified_context()  # noqa: S323, SLF001  # the connection stays local
    error: Exception
    for connection in (
        http.client.HTTPConnection(host, port, timeout=2),
        http.client.HTTPSConnection(host, port, timeout=2, context=context),
    ):
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as failure:
            error = failure
            continue
        sys.stdout.write(response.read().decode())
        return int(response.status != http.client.OK)
    sys.stdout.write(f"{error}\n")
    return 1


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(main("127.0.0.1", int(sys.argv[1])))
    setting = os.environ.get
    # An unspecified address, such as 0.0.0.0, includes the local one.
    host = setting("GATEWAY_ADMIN_HOST", "127.0.0.1")
    sys.exit(main(host, int(setting("GATEWAY_ADMIN_PORT", "8090"))))
