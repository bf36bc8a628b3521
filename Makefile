# Thin by intent: .ci/run is the whole check, and `go test ./... ./hermetic/...` is the interface.

.PHONY: build test check all bench-startup

build: ## the static binaries, in bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ ./cmd/...

test: ## Go and nothing else, as root or not: some minutes on two cores
	CGO_ENABLED=0 go test ./... ./hermetic/...

check: ## the rest, as root on Debian: it installs what it uses; 25 minutes on two cores
	bash .ci/run check

all: ## both, as CI runs them
	bash .ci/run

bench-startup: ## launch against bwrap, side by side
	go run ./bench/startup
