# Cross-compiles for the architecture of the image, amd64 or arm64:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=… --build-arg REVISION=… -t rdma_exporter .
#   buildah build --format docker --build-arg VERSION=… --build-arg REVISION=… -t rdma_exporter .

# Build image: Go and a C compiler on Debian; runtime image: the same Debian without them. make images updates the digests.
ARG GO_IMAGE=golang:1.26-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d
# glibc: required by the GPU driver library that the NVIDIA runtime mounts into the container.
ARG RUNTIME_IMAGE=debian:bookworm-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETARCH
# NVML needs cgo, and cgo a C cross compiler.
RUN if [ "${TARGETARCH:=$(go env GOHOSTARCH)}" != "$(go env GOHOSTARCH)" ]; then \
      case "$TARGETARCH" in \
        amd64) packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
        arm64) packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
        *) echo "the image is made for amd64 and arm64, not for '$TARGETARCH'" >&2; exit 1 ;; \
      esac; \
      apt-get update && apt-get install -y --no-install-recommends $packages && rm -rf /var/lib/apt/lists/*; \
    fi
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
ARG REVISION=unknown
RUN if [ "${TARGETARCH:=$(go env GOHOSTARCH)}" != "$(go env GOHOSTARCH)" ]; then \
      case "$TARGETARCH" in amd64) export CC=x86_64-linux-gnu-gcc ;; arm64) export CC=aarch64-linux-gnu-gcc ;; esac; \
    fi; \
    CGO_ENABLED=1 GOOS=linux GOARCH="$TARGETARCH" CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" \
    go build -trimpath -buildvcs=false -ldflags "-s -w \
      -X github.com/prometheus/common/version.Version=${VERSION} \
      -X github.com/prometheus/common/version.Revision=${REVISION}" \
      -o /out/rdma_exporter ./cmd/rdma_exporter && mkdir /out/state && \
    go run ./packaging/thirdparty -arch "$TARGETARCH" -o /out/THIRD_PARTY

# No RUN in this stage: it may be of another architecture.
FROM ${RUNTIME_IMAGE}
COPY --from=build /src/LICENSE /out/THIRD_PARTY /usr/share/doc/rdma_exporter/
# Sets the owner of new volumes mounted here.
COPY --from=build --chown=65532:65532 /out/state /var/lib/rdma_exporter
COPY --from=build /out/rdma_exporter /usr/bin/rdma_exporter
USER 65532:65532
EXPOSE 10879
ENTRYPOINT ["/usr/bin/rdma_exporter"]
# Takes address, path and TLS from the command line of the exporter in this container.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["/usr/bin/rdma_exporter", "healthy"]
ARG RUNTIME_IMAGE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rdma_exporter" \
      org.opencontainers.image.description="Health of RDMA fabrics for Prometheus" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
