FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
ARG REVISION=unknown
RUN CGO_ENABLED=1 go build -trimpath -ldflags "-s -w \
      -X github.com/prometheus/common/version.Version=${VERSION} \
      -X github.com/prometheus/common/version.Revision=${REVISION}" \
      -o /rdma_exporter ./cmd/rdma_exporter

# glibc: libraries of the host's drivers are linked against it.
FROM debian:bookworm-slim
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rdma_exporter" \
      org.opencontainers.image.description="Health of the RDMA fabric for Prometheus" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY LICENSE /usr/share/doc/rdma_exporter/LICENSE
COPY --from=build /rdma_exporter /usr/local/bin/rdma_exporter
USER 65532:65532
EXPOSE 10879
# No HEALTHCHECK: address, TLS and authentication are flags that a check in the image cannot know. Probe /-/healthy.
ENTRYPOINT ["/usr/local/bin/rdma_exporter"]
