# Xyro, from the hash-pinned lock: a node, a broker (`xyro hub`) or a command. docker-compose.yml runs a cluster; by hand:
#
#     docker build -t xyro .
#     docker run -v xyro:/data -e XYRO_FETCH__CONTACT=you@example.org xyro crawl https://example.org/

FROM python:3.11.14-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/xyro
WORKDIR /src
COPY requirements.lock ./
RUN /opt/xyro/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY wire wire
COPY configs configs
COPY xyro xyro
COPY metadata metadata
COPY opic opic
COPY refresh refresh
COPY loader loader
COPY frontier frontier
COPY service service
COPY plugins plugins
COPY library library
COPY lab lab
RUN /opt/xyro/bin/pip install --no-deps --no-build-isolation .

FROM python:3.11.14-slim-bookworm
RUN install -d -o 10001 -g 10001 -m 0700 /data /join
COPY --from=build /opt/xyro /opt/xyro
ENV PATH=/opt/xyro/bin:$PATH
# Commands take ./xyro-data unless told otherwise, and /data itself could not be renamed into place, being a mount.
WORKDIR /data
VOLUME /data
USER 10001:10001
# Asks the running process; if it does not answer, its lock on the data makes this fail.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 CMD ["xyro", "status", "--check"]
ENTRYPOINT ["xyro"]
CMD ["serve"]
