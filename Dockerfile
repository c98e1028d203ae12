# One image for the four programs: compose.yaml says which of them a container runs.

FROM python:3.13-slim AS environment
# Where packages come from, if that is not where pip looks by itself.
ARG PIP_INDEX_URL
COPY requirements/run.txt .
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv install --no-cache-dir --disable-pip-version-check \
    --require-hashes --only-binary :all: --requirement run.txt

FROM python:3.13-slim
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY --from=environment /opt/venv /opt/venv
COPY . .
# A named volume takes its first owner from this folder.
RUN python -m compileall -q . && install -d -o 10001 -g 10001 /data
USER 10001:10001
