//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// question is a program of the scripts: it asks the machine's resolver for a
// name, once, and says how that ended.
func question() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip4", os.Args[1]+".")
	var failed *net.DNSError
	switch {
	case err == nil:
		fmt.Println("NOERROR")
	case errors.As(err, &failed) && failed.IsNotFound:
		fmt.Println("NXDOMAIN")
	default:
		fmt.Println("SERVFAIL", err)
	}
}
