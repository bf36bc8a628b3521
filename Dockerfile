# The egressd image: two static binaries, CA roots, an empty policy; nothing else, no shell.
#
#   docker build -t egressd .
#   docker build --build-arg VERSION=v1.2.3 --platform linux/amd64,linux/arm64 -t egressd:v1.2.3 .
#
# GO_IMAGE may be any image with Go, a shell and CA roots.
ARG GO_IMAGE=docker.io/library/golang:1.26

# Cross-compiled on the builder's own platform: Go needs no emulator.
FROM --platform=${BUILDPLATFORM} ${GO_IMAGE} AS build
WORKDIR /src
# The modules are a layer of their own, kept until go.mod or go.sum change.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Unset or empty means the platform that builds.
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
# Under 25 MB: without net/http's HTTP/2, which no door speaks; without inlining in what the bytes of a flow do not pass
# through (but for the handshakes and records of TLS that egressd opens); and launch without the shell and commands of the
# hermetic tier and the double of the hosted API (tag small), which are for a person's machine.
RUN CGO_ENABLED=0 GOOS="${TARGETOS}" GOARCH="${TARGETARCH}" \
      go build -trimpath -buildvcs=false -tags nethttpomithttp2,small \
      -gcflags "google.golang.org/protobuf/...=-l" -gcflags "github.com/prometheus/...=-l" -gcflags "github.com/miekg/dns=-l" \
      -gcflags "golang.org/x/net/http2=-l" -gcflags "golang.org/x/text/...=-l" -gcflags "github.com/google/nftables/...=-l" \
      -gcflags "github.com/elazarl/goproxy=-l" -gcflags "go.yaml.in/yaml/v3=-l" -gcflags "egressd/sandbox/...=-l" \
      -gcflags "egressd/cmd/...=-l" -gcflags "encoding/json=-l" -gcflags "encoding/asn1=-l" -gcflags "crypto/x509=-l" \
      -gcflags "crypto/tls=-l" -gcflags "math/big=-l" -gcflags "archive/tar=-l" -gcflags "mime/multipart=-l" -gcflags "mime=-l" \
      -gcflags "net/textproto=-l" -gcflags "text/template=-l" -gcflags "html=-l" -gcflags "regexp/syntax=-l" -gcflags "flag=-l" -gcflags "fmt=-l" \
      -ldflags "-s -w -X egressd/internal/cli.version=${VERSION}" \
      -o /out/ ./cmd/egressd ./cmd/launch
# /run/egressd holds the admin and control sockets: the only directory that the daemon writes. Its mode is
# that of /tmp, because a tmpfs mounted there takes over the mode but not always the owner.
# What the files here may do is said once, for every builder: COPY --chmod is not known to all.
RUN mkdir -p /out/etc/egressd /out/etc/ssl/certs /out/run/egressd \
 && cp deploy/image/policy.yaml /out/etc/egressd/policy.yaml \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ca-certificates.crt \
 && chmod 0755 /out /out/egressd /out/launch /out/etc /out/etc/egressd /out/etc/ssl /out/etc/ssl/certs /out/run \
 && chmod 0644 /out/etc/egressd/policy.yaml /out/etc/ssl/certs/ca-certificates.crt \
 && chmod 1777 /out/run/egressd && chown 65532:65532 /out/run/egressd

FROM scratch
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="egressd" \
      org.opencontainers.image.description="Deny-by-default egress control for AI agents and other untrusted programs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/ /
ENV EGRESSD_POLICY=/etc/egressd/policy.yaml \
    EGRESSD_ADMIN=unix:/run/egressd/admin.sock
# Numeric, so that Kubernetes' runAsNonRoot can check it. `egressd capture` exempts this uid by default:
# nothing else in the pod may run as it.
USER 65532:65532
# Drained on SIGTERM; the grace period of the runtime should be longer than --drain (30s).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/egressd", "healthcheck"]
ENTRYPOINT ["/egressd"]
