# The image: a virtual environment on a slim Python, everything by hash and compiled, no shell needed, not as root.
# Build it from a checkout: docker build --tag registry.example.com/eurekube-sync:0.1.0 .
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BASE} AS build
# Without the last one pip itself would leave compiled files with times in them, and no two builds were the same.
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
RUN python3 -m venv /build/venv && python3 -m venv /opt/eurekube-sync
COPY build.lock requirements.lock /build/
RUN /build/venv/bin/pip install --no-compile --only-binary=:all: --require-hashes -r /build/build.lock \
 && /opt/eurekube-sync/bin/pip install --no-compile --only-binary=:all: --require-hashes -r /build/requirements.lock
COPY . /build/src/
# The client's asyncio half is 64 MB, and never imported.
RUN /build/venv/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /build/dist /build/src \
 && /opt/eurekube-sync/bin/pip install --no-compile --no-deps --no-index /build/dist/*.whl \
 && /opt/eurekube-sync/bin/pip uninstall --quiet --yes pip \
 && rm -r /opt/eurekube-sync/lib/python3.*/site-packages/kubernetes/aio
# A read-only root can keep nothing that Python compiles at a start: so the standard library is compiled here as well.
RUN stdlib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
 && python3 -m compileall -q -j0 --invalidation-mode unchecked-hash /opt/eurekube-sync/lib \
 && mkdir /build/stdlib && cp -a --parents "$stdlib" /build/stdlib/ \
 && python3 -m compileall -q -j0 -f --invalidation-mode unchecked-hash -s /build/stdlib \
      -x '/(test|tests|idlelib|lib2to3|turtledemo|ensurepip)/' "/build/stdlib$stdlib" \
 && find /build/stdlib -type f ! -name '*.pyc' -delete && find /build/stdlib -depth -type d -empty -delete

FROM ${BASE}
# A release adds where it comes from: source, revision and version.
LABEL org.opencontainers.image.title="eurekube-sync" \
      org.opencontainers.image.description="Makes services in a Kubernetes cluster appear in Netflix Eureka." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /build/stdlib /
COPY --from=build /opt/eurekube-sync /opt/eurekube-sync
ENV PATH=/opt/eurekube-sync/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["eurekube-sync"]
