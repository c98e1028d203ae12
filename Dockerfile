# One image for the four programs: compose.yaml says which of them a container runs.

# A tag, since the digest of an image for all platforms is known to its registry alone. To pin it:
# PYTHON_IMAGE=python:3.13-slim@sha256:... docker compose build
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS environment
# Where packages come from, if that is not where pip looks by itself.
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/run.txt requirements/build.txt ./
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv install --require-hashes --only-binary :all: --requirement run.txt \
 && python -m pip install --target tools --require-hashes --only-binary :all: --requirement build.txt
# Whether the hot modules of the gateway are compiled; `no` leaves it plain Python.
ARG COMPILED=yes
COPY requirements/compile.txt ./
# The compiler is Debian's, as are the headers of a Python that came without.
RUN case $COMPILED in no) exit;; yes) ;; *) echo "COMPILED is '$COMPILED': yes or no." >&2; exit 2;; esac; \
    headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
 && apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    gcc libc6-dev $([ -e "$headers/Python.h" ] || echo python3-dev) \
 && python -m pip install --target tools --require-hashes --only-binary :all: --requirement compile.txt
ENV PYTHONPATH=/build/tools
COPY pyproject.toml README.md ./
COPY stack/compile.py stack/compile.py
COPY gateway gateway
# The gateway is installed as anybody would install it; what it needs is there already, pinned.
RUN python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir plain . \
 && if [ "$COMPILED" = no ]; then cp plain/*.whl .; \
    else /opt/venv/bin/python stack/compile.py plain/*.whl . || \
      { echo "The gateway could not be compiled. COMPILED=no leaves it plain Python." >&2; exit 1; }; fi \
 && python -m pip --python /opt/venv install --no-index --no-deps *.whl

FROM ${PYTHON_IMAGE}
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY --from=environment /opt/venv /opt/venv
COPY backend_v1 backend_v1
COPY backend_v2 backend_v2
COPY users_service users_service
COPY stack/healthy.py stack/healthy.py
# A named volume takes its first owner from this folder.
RUN python -m compileall -q . && install -d -o 10001 -g 10001 /data
USER 10001:10001
