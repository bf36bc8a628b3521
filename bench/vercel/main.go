//go:build unix

// Vercel measures how long a large workspace takes to a sandbox of the double
// and back, and how much memory launch needs for it.
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
