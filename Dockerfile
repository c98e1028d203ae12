# The image of the gateway, and the example programs of compose.yaml as the target `demo`:
#   docker build -t version-gateway .
#   docker build -t version-gateway-demo --target demo .

# A tag works on all platforms. To pin the image by its digest:
# PYTHON_IMAGE=python:3.13-slim@sha256:... docker compose build
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS environment
# The package index, if it is not the default of pip.
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/run.txt requirements/build.txt ./
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv install --require-hashes --only-binary :all: --requirement run.txt \
 && python -m pip install --target tools --require-hashes --only-binary :all: --requirement build.txt
# Whether the modules in tool.compile are compiled; `no` installs plain Python.
ARG COMPILED=yes
COPY requirements/compile.txt ./
# The compiler comes from Debian, and so do the headers if the image has none.
RUN case $COMPILED in no) exit;; yes) ;; *) echo "COMPILED is '$COMPILED': yes or no." >&2; exit 2;; esac; \
    headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
 && apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    gcc libc6-dev $([ -e "$headers/Python.h" ] || echo python3-dev) \
 && python -m pip install --target tools --require-hashes --only-binary :all: --requirement compile.txt
ENV PYTHONPATH=/build/tools
COPY pyproject.toml README.md ./
COPY stack/compile.py stack/compile.py
COPY gateway gateway
# The gateway is installed from its wheel. Its pinned dependencies are already installed.
RUN python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir plain . \
 && if [ "$COMPILED" = no ]; then cp plain/*.whl .; \
    else /opt/venv/bin/python stack/compile.py plain/*.whl . || \
      { echo "The gateway could not be compiled. COMPILED=no installs plain Python." >&2; exit 1; }; fi \
 && python -m pip --python /opt/venv install --no-index --no-deps *.whl

FROM ${PYTHON_IMAGE} AS installed
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
COPY --from=environment /opt/venv /opt/venv
COPY stack/healthy.py /opt/healthy.py
# A new named volume gets the owner of this folder.
RUN install -d -o 10001 -g 10001 /data && install -d /etc/version-gateway
USER 10001:10001

FROM installed AS demo
WORKDIR /app
COPY backend_v1 backend_v1
COPY backend_v2 backend_v2
COPY users_service users_service

FROM installed AS gateway
ARG REVISION=unknown
LABEL org.opencontainers.image.title="version-gateway" \
      org.opencontainers.image.description="Run, change and retire API versions without breaking a client" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.revision="${REVISION}"
ENV GATEWAY_HOST=0.0.0.0 \
    GATEWAY_CONFIG=/etc/version-gateway/gateway.yaml \
    GATEWAY_OVERRIDES_FILE=/data/overrides.json
WORKDIR /data
EXPOSE 8080 8090
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python", "/opt/healthy.py"]
ENTRYPOINT ["version-gateway"]
