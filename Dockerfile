# syntax=docker/dockerfile:1

# What runs in the end: the program, its certificates and its C library; no shell, no package manager, not root.
# With --target try: all in one, to try things out; `docker run -p 8080:8080` shows the dashboard with a past.

# Tags can be moved by whoever publishes them: a release gives digests here (docs/running.md).
ARG RUST_IMAGE=rust:1.95-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot
ARG POSTGRES_IMAGE=postgres:17-bookworm

FROM ${RUST_IMAGE} AS build
# What `farescan --version` says, such as `0.1.0 (adfbf909b4c1 2026-11-26)`; the version alone if empty.
ARG FARESCAN_BUILD
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY .sqlx .sqlx
COPY migrations migrations
COPY crates crates
COPY src src
# Crates and what was compiled stay on the builder between builds. The folders are those of the volumes: a named volume takes over
# owner and mode of what the image has in its place.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/build/target,sharing=locked \
    if [ -n "$FARESCAN_BUILD" ]; then export FARESCAN_BUILD; else unset FARESCAN_BUILD; fi \
    && cargo build --release --locked --bin farescan \
    && install -D -m 0755 target/release/farescan /out/farescan \
    && install -d -m 0700 /out/home/keys /out/home/spool \
    && install -d -m 0755 /out/home/database

# Postgres' programs, the simulated marketplace and what the demo makes: a month of fares, a hotel by market, a monitor with alerts.
# Nothing of it is meant to be kept.
FROM ${POSTGRES_IMAGE} AS try
COPY --from=build /out/farescan /usr/local/bin/farescan
ENV FARESCAN_LISTEN=0.0.0.0:8080 \
    FARESCAN_DATA_DIR=/tmp/farescan
USER postgres
WORKDIR /tmp
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/farescan"]
CMD ["demo"]

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="farescan" \
      org.opencontainers.image.description="Gateway and scanner for live flight and hotel prices" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /out/farescan /usr/local/bin/farescan
COPY --from=build --chown=65532:65532 /out/home /farescan
# Inside a container loopback is nobody's: what is reachable is decided by the ports that are published.
ENV FARESCAN_LISTEN=0.0.0.0:8080 \
    FARESCAN_ADMIN_LISTEN=0.0.0.0:9090 \
    FARESCAN_LOG_FORMAT=json
USER 65532:65532
WORKDIR /farescan
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["/usr/local/bin/farescan", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/farescan"]
CMD ["serve"]
