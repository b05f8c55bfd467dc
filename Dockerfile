# The image of Nuthatch: its two programs, linked statically, and no other program.
#   docker build --tag nuthatch .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag nuthatch .
# docs/kubernetes.md says how to run it. scripts/image tests it.
FROM --platform=$BUILDPLATFORM docker.io/library/rust:1.95-bookworm AS build
ARG TARGETARCH
# `otlp` for an image with OpenTelemetry: docker build --build-arg FEATURES=otlp
ARG FEATURES=
WORKDIR /source
COPY . .
RUN NUTHATCH_FEATURES="$FEATURES" scripts/image files /image "$TARGETARCH"

FROM scratch
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="nuthatch" \
  org.opencontainers.image.description="Key-value system for the read path of applications" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.source="https://github.com/nuthatch-kv/nuthatch" \
  org.opencontainers.image.documentation="https://github.com/nuthatch-kv/nuthatch/tree/main/docs" \
  org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/ /
# Redis clients of other containers can connect, so `serve` demands a password (or --insecure).
ENV NUTHATCH_RESP=0.0.0.0:6379 NUTHATCH_MEMCACHE=off
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
WORKDIR /data
EXPOSE 6379 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/bin/nuthatch", "ping", "--quiet"]
ENTRYPOINT ["/usr/bin/nuthatch"]
CMD ["serve"]
