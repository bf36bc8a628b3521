package proxy

import (
	"errors"
	"io"
	"net"
)

var (
	relayPool  = &buffers{size: relayBytes}
	errStopped = errors.New("stopped")
)

// transfer carries src to dst until src ends (nil) or either fails. count is
// told of every piece; false stops.
func transfer(dst, src net.Conn, count func(int64) bool) error {
	buf := relayPool.get()
	defer relayPool.put(buf, relayBytes)
	for {
		n, err := src.Read(*buf)
		if n > 0 {
			if !count(int64(n)) {
				return errStopped
			}
			if _, err := dst.Write((*buf)[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
