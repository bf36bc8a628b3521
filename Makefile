# Thin by intent: .ci/run is the whole check, and `go test ./...` is the interface.

.PHONY: build check check-root test bench-startup

build: ## the static binaries, in bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

test:
	go test -race ./...

check: ## what can be checked as an ordinary user
	go vet ./...
	GOOS=darwin go vet ./...
	go mod tidy -diff
	go test -race ./...

check-root: ## all of it, as root on Debian: installs what it needs, tests as root and as a person
	bash .ci/run

bench-startup: ## launch against bwrap, side by side
	go run ./bench/startup
