package peek

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/pool"
	"egressd/proxy/internal/wire"
)

// sent is a Stream whose client sends b and then closes.
func sent(t *testing.T, b []byte) *Stream {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Write(b)
		_ = theirs.Close()
	}()
	t.Cleanup(func() { _ = ours.Close() })
	return &Stream{Conn: ours, Pool: new(pool.Buffers)}
}

// TestHeldBytesAreReadOnce looks at first bytes, consumes some, and reads on.
func TestHeldBytesAreReadOnce(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 1000) // more than one buffer
	st := sent(t, want)
	for len(st.Held()) < 6000 {
		if err := st.More(8000); err != nil {
			t.Fatal(err)
		}
	}
	st.Skip(10)
	got, err := io.ReadAll(st)
	if err != nil || !bytes.Equal(got, want[10:]) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want)-10)
	}
	if len(st.Held()) != 0 {
		t.Errorf("%d bytes are held when all were read", len(st.Held()))
	}
}

func TestMoreStopsAtTheLimit(t *testing.T) {
	st := sent(t, make([]byte, 200))
	var err error
	for err == nil {
		err = st.More(100)
	}
	if !errors.Is(err, ErrTooLong) || len(st.Held()) != 100 {
		t.Errorf("%d bytes, %v", len(st.Held()), err)
	}
	if _, state, err := Hello(sent(t, append([]byte{22, 3, 1, 0x10, 0, 1, 0, 0xf, 0xf0}, make([]byte, 200)...)), 100); state != wire.Bad || err != nil {
		t.Errorf("a hello over the limit: %v, %v", state, err)
	}
	if _, state, err := Hello(sent(t, []byte{22, 3}), 100); state != wire.More || err != io.EOF {
		t.Errorf("half a hello: %v, %v", state, err)
	}
}

// TestBudgetBoundsWhatIsHeld wants more than one buffer when the budget of all
// clients is used up, and gives back what it took when it is not.
func TestBudgetBoundsWhatIsHeld(t *testing.T) {
	budget := new(admission.Budget)
	for budget.Take(1 << 20) {
	}
	for budget.Take(1 << 10) {
	}
	st := sent(t, make([]byte, 3*BufferBytes))
	st.Budget = budget
	var err error
	for err == nil {
		err = st.More(1 << 20)
	}
	if !errors.Is(err, admission.ErrHeldTooMuch) || len(st.Held()) != BufferBytes {
		t.Errorf("%d bytes, %v", len(st.Held()), err)
	}
	budget.GiveBack(64 << 10)
	if err := st.More(1 << 20); err != nil {
		t.Fatal(err)
	}
	st.Release()
	if !budget.Take(64 << 10) {
		t.Error("a released buffer still counts")
	}
}

// owner is an Owner that wants the connection to end.
type owner struct {
	net.Conn
	resets int
}

func (o *owner) LimitRead(time.Time) error { return o.Conn.SetReadDeadline(time.Unix(1, 0)) }
func (o *owner) BeforeReset()              { o.resets++ }

func TestOwnerHasTheLastWord(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	o := &owner{Conn: ours}
	st := &Stream{Conn: ours, Owner: o, Pool: new(pool.Buffers)}
	if err := st.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := st.More(100); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, want the deadline of the owner", err)
	}
	st.Reset()
	if o.resets != 1 {
		t.Errorf("%d resets", o.resets)
	}
}

func TestBegins(t *testing.T) {
	for said, want := range map[string]bool{"SSH-2.0-x\n": true, "SSH-": true, "SSH": false, "": false, "SSL-": false, "GET /": false} {
		st := sent(t, []byte(said))
		if got := Begins(st, "SSH-"); got != want {
			t.Errorf("%q: %v", said, got)
		}
		if held := string(st.Held()); len(held) > 4 || held != said[:len(held)] {
			t.Errorf("%q: %q is held", said, held)
		}
	}
}
