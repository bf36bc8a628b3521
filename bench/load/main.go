// Load measures what egressd costs beside squid and beside no proxy at all:
// tunnels a second, bytes a second, requests a second, memory of idle tunnels
// and the latency it adds, in turns on one machine.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
