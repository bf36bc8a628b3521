# Two images, each a static binary, CA roots and nothing else, no shell: egressd, and launch for whoever
# copies it into an image of an agent's.
#
#   docker build -t egressd .
#   docker build --target launch -t launch .
#   docker build --build-arg VERSION=v1.2.3 --platform linux/amd64,linux/arm64 -t egressd:v1.2.3 .
#
# GO_IMAGE may be any image with Go, a shell and CA roots.
ARG GO_IMAGE=docker.io/library/golang:1.26

# Cross-compiled on the builder's own platform: Go needs no emulator.
FROM --platform=${BUILDPLATFORM} ${GO_IMAGE} AS source
WORKDIR /src
# The modules are a layer of their own, kept until what names them changes. Without go.work, for which download
# fetches every module that any of them mentions; go.mod leads to ./hermetic by itself.
COPY go.mod go.sum ./
COPY hermetic/go.mod hermetic/go.sum hermetic/
RUN go mod download
COPY . .
# /sockets holds the admin and control sockets: the only directory that the daemon writes. Its mode is
# that of /tmp, because a tmpfs mounted there takes over the mode but not always the owner. It is not below
# /run: with --read-only Podman mounts a tmpfs there, and one mounted below that keeps no mode.
# What the files here may do is said once, for every builder: COPY --chmod is not known to all.
RUN mkdir -p /launch/etc/ssl/certs /egressd/etc/ssl/certs /egressd/etc/egressd /egressd/sockets \
 && cp /etc/ssl/certs/ca-certificates.crt /launch/etc/ssl/certs/ca-certificates.crt \
 && cp /etc/ssl/certs/ca-certificates.crt /egressd/etc/ssl/certs/ca-certificates.crt \
 && cp deploy/image/policy.yaml /egressd/etc/egressd/policy.yaml \
 && for root in /launch /egressd; do chmod 0755 $root $root/etc $root/etc/ssl $root/etc/ssl/certs \
      && chmod 0644 $root/etc/ssl/certs/ca-certificates.crt || exit 1; done \
 && chmod 0755 /egressd/etc/egressd && chmod 0644 /egressd/etc/egressd/policy.yaml \
 && chmod 1777 /egressd/sockets && chown 65532:65532 /egressd/sockets

# TARGETOS and TARGETARCH, unset or empty, mean the platform that builds.
FROM source AS build-launch
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
RUN CGO_ENABLED=0 GOOS="${TARGETOS}" GOARCH="${TARGETARCH}" \
      go build -trimpath -buildvcs=false -ldflags "-s -w -X egressd/internal/cli.version=${VERSION}" -o /launch/launch ./cmd/launch \
 && chmod 0755 /launch/launch

FROM source AS build-egressd
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
RUN CGO_ENABLED=0 GOOS="${TARGETOS}" GOARCH="${TARGETARCH}" \
      go build -trimpath -buildvcs=false -ldflags "-s -w -X egressd/internal/cli.version=${VERSION}" -o /egressd/egressd ./cmd/egressd \
 && chmod 0755 /egressd/egressd

FROM scratch AS launch
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="launch" \
      org.opencontainers.image.description="Runs one program behind a deny-by-default egress gate of its own" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build-launch /launch/ /
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/launch"]

# The last: what is built when no target is named.
FROM scratch AS egressd
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="egressd" \
      org.opencontainers.image.description="Deny-by-default egress control for AI agents and other untrusted programs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build-egressd /egressd/ /
ENV EGRESSD_POLICY=/etc/egressd/policy.yaml \
    EGRESSD_ADMIN=unix:/sockets/admin.sock
# Numeric, so that Kubernetes' runAsNonRoot can check it. `egressd capture` exempts this uid by default:
# nothing else in the pod may run as it.
USER 65532:65532
# Drained on SIGTERM; the grace period of the runtime should be longer than --drain (30s).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/egressd", "healthcheck"]
ENTRYPOINT ["/egressd"]
