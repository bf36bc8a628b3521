package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeFD is where the tests put descriptors: far from those in use.
const fakeFD = 500

// pass copies sockets to descriptors fakeFD and up, as the service manager
// does: without close-on-exec.
func pass(t *testing.T, files ...*os.File) {
	t.Helper()
	for i, f := range files {
		if err := unix.Dup3(int(f.Fd()), fakeFD+i, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fakeFD + i) }) // a second close is an error, and no harm: nothing else runs
	}
}

func env(pid, n int, names string) []string {
	return []string{"PATH=/bin", "LISTEN_PID=" + strconv.Itoa(pid), "LISTEN_FDS=" + strconv.Itoa(n), "LISTEN_FDNAMES=" + names}
}

type filer interface{ File() (*os.File, error) }

func file(t *testing.T, socket any) *os.File {
	t.Helper()
	f, err := socket.(filer).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func sockets(t *testing.T) (tcp net.Listener, udp net.PacketConn, local net.Listener) {
	t.Helper()
	var lc net.ListenConfig
	tcp, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err = lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	local, err = lc.Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close(); _ = udp.Close(); _ = local.Close() })
	return tcp, udp, local
}

func TestListeners(t *testing.T) {
	tcp, udp, local := sockets(t)
	pass(t, file(t, tcp), file(t, udp), file(t, local))
	got, err := listeners(env(7, 3, "proxy:dns.team-a:control"), 7, fakeFD)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range got {
			n.close()
		}
	})
	if len(got) != 3 || got[0].Name != "proxy" || got[1].Name != "dns.team-a" || got[2].Name != "control" {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []net.Addr{tcp.Addr(), udp.LocalAddr(), local.Addr()} {
		var have net.Addr
		if p := got[i].Packet; p != nil {
			have = p.LocalAddr()
		} else {
			have = got[i].Listener.Addr()
		}
		if have.String() != want.String() || have.Network() != want.Network() {
			t.Errorf("socket %d is %v %v, want %v", i, have.Network(), have, want)
		}
		// The passed descriptors are used up.
		if _, err := unix.FcntlInt(uintptr(fakeFD+i), unix.F_GETFD, 0); err == nil {
			t.Errorf("descriptor %d is still open", i)
		}
	}
	// What is adopted works, and no child inherits it.
	for _, socket := range []any{got[0].Listener, got[1].Packet, got[2].Listener} {
		if flags, err := unix.FcntlInt(file(t, socket).Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%T is inherited: %v, %v", socket, flags, err)
		}
	}
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if in, err := got[0].Listener.Accept(); err != nil {
		t.Error(err)
	} else {
		_ = in.Close()
	}
}

// A socket that cannot be used spoils all of them: a daemon that starts with
// one door less would be worse than one that does not start.
func TestListenersRefuse(t *testing.T) {
	tcp, _, _ := sockets(t)
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Fatal(err)
	}
	packets := os.NewFile(uintptr(pair[0]), "seqpacket")
	defer packets.Close()
	defer unix.Close(pair[1])
	for _, tt := range []struct {
		name string
		file *os.File
		want string
	}{
		{"connection", file(t, conn), "Accept=no"},
		{"no socket", null, "not a socket"},
		{"packets", packets, "ListenStream="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pass(t, file(t, tcp), tt.file)
			got, err := listeners(env(7, 2, "proxy:odd"), 7, fakeFD)
			if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "(odd)") {
				t.Fatalf("got %v, %v", got, err)
			}
			for i := range 2 {
				if _, err := unix.FcntlInt(uintptr(fakeFD+i), unix.F_GETFD, 0); err == nil {
					t.Errorf("descriptor %d is still open", i)
				}
			}
		})
	}
	// A descriptor that was never opened.
	if _, err := listeners(env(7, 1, "ghost"), 7, fakeFD+50); err == nil || !strings.Contains(err.Error(), "ghost") {
		t.Errorf("got %v", err)
	}
}

// childEnv makes the test binary the activated service of TestActivated.
const childEnv = "EGRESSD_TEST_ACTIVATED"

// TestActivated starts a process the way the service manager does: descriptors
// from 3 on, LISTEN_PID its own.
func TestActivated(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		activated(t)
		return
	}
	tcp, udp, _ := sockets(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" -test.run='^TestActivated$'`, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "LISTEN_FDS=2", "LISTEN_FDNAMES=proxy:dns")
	cmd.ExtraFiles = []*os.File{file(t, tcp), file(t, udp)}
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("proxy=%s dns=%s\n", tcp.Addr(), udp.LocalAddr())
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s\nwant %s", err, out, want)
	}
}

func activated(t *testing.T) {
	got, err := Listeners(os.Environ())
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	fmt.Printf("%s=%s %s=%s\n", got[0].Name, got[0].Listener.Addr(), got[1].Name, got[1].Packet.LocalAddr())
	for _, n := range got {
		n.close()
	}
}

// receive reads one datagram of a fake service manager.
func receive(ctx context.Context, t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(end)
	}
	buf := make([]byte, 4096)
	n, _, err := conn.ReadFromUnix(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}
