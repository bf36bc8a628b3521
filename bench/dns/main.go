// Dns measures the DNS door of egressd beside other servers that answer by a list.
//
//	go run ./bench/dns [-egressd FILE] [-other FILE] [-rounds N] [-each TIME] [-only LIST]
//
// See bench/README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
