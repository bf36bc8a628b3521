//go:build !linux

package netlink
