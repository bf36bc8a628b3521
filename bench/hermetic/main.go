// Hermetic measures how many trivial scripts launch --tier hermetic runs in a
// minute on one processor, what they take of memory, and what hundreds side by
// side leave behind.
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
