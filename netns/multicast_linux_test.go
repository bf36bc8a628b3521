package netns

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/nft"
)

// No reply can be sent for these, so sending fails.
func TestMulticastIsRefused(t *testing.T) {
	targets := []string{"224.0.0.251:5353", "239.255.255.250:1900", "[ff02::fb%lo]:5353", "[ff0e::1]:443"}
	newWorld(t, nil)
	for _, dst := range targets {
		if err := sendUDPOnly(dst); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v", dst, err)
		}
	}
	if err := broadcast(); !errors.Is(err, unix.EPERM) {
		t.Errorf("broadcast: %v", err)
	}
}

func TestMulticastWithoutItsRule(t *testing.T) {
	newWorld(t, func(r *nft.Table) {
		without("224.0.0.0/4")(r)
		without("255.255.255.255")(r)
		without("ff00::/8")(r)
	})
	for _, dst := range []string{"224.0.0.251:5353", "[ff0e::1]:443"} {
		if err := sendUDPOnly(dst); err != nil {
			t.Errorf("%s: %v", dst, err)
		}
	}
	if err := broadcast(); err != nil {
		t.Errorf("broadcast: %v", err)
	}
}

func broadcast() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("hello"), 0, &unix.SockaddrInet4{Addr: [4]byte{255, 255, 255, 255}, Port: 9})
}
