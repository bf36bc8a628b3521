package accept

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestPasses(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{syscall.EMFILE, true},
		{syscall.ECONNABORTED, true},
		{&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EPERM)}, true}, // as net reports it
		{net.ErrClosed, false},
		{syscall.EINVAL, false},
		{errors.New("another"), false},
		{nil, false},
	} {
		if got := Passes(tt.err); got != tt.want {
			t.Errorf("Passes(%v) = %v", tt.err, got)
		}
	}
}
