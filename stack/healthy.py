"""The health check for containers: exits with 0 if the program on a local port is ready.

python stack/healthy.py 8001
"""

import http.client
import sys


def main(port: int) -> int:
    """Request /readyz; return the exit status, 0 if the program is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return int(connection.getresponse().status != http.client.OK)
    except (OSError, http.client.HTTPException) as error:
        sys.stdout.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
