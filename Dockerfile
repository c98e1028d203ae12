# One image for the four programs: compose.yaml says which of them a container runs.

# A tag, since the digest of an image for all platforms is known to its registry alone. To pin it:
# PYTHON_IMAGE=python:3.13-slim@sha256:... docker compose build
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS environment
# Where packages come from, if that is not where pip looks by itself.
ARG PIP_INDEX_URL
WORKDIR /build
COPY requirements/run.txt requirements/build.txt ./
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv install --no-cache-dir --disable-pip-version-check \
    --require-hashes --only-binary :all: --requirement run.txt \
 && python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action ignore \
    --require-hashes --only-binary :all: --requirement build.txt
COPY pyproject.toml README.md ./
COPY gateway gateway
# The gateway is installed as anybody would install it; what it needs is there already, pinned.
RUN python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir . . \
 && python -m pip --python /opt/venv install --disable-pip-version-check --no-index --no-deps *.whl

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
