package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// serveUnix listens at path, says so, and answers until it is killed.
func serveUnix(path string) error {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		c.Write([]byte("outside"))
		c.Close()
	}
}

// connectLate says that it runs, waits for the socket, and connects.
func connectLate(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "started"), nil, 0o644); err != nil {
		return err
	}
	for range 500 {
		if _, err := os.Lstat(filepath.Join(dir, "late")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond) // polling: somebody outside makes it
	}
	return connectUnix(filepath.Join(dir, "late"))
}

func connectUndumpable(path string) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return connectUnix(path)
}

// rawUnix is a struct sockaddr_un.
func rawUnix(path string) (a [110]byte) {
	*(*uint16)(unsafe.Pointer(&a)) = unix.AF_UNIX
	copy(a[2:], path)
	return a
}

// heardOutside reports whether the server of outside talks on fd.
func heardOutside(fd int) bool {
	var b [16]byte
	tv := unix.Timeval{Usec: 200_000}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	n, err := unix.Read(fd, b[:])
	return err == nil && string(b[:n]) == "outside"
}

// raceTime is how long a race is run, unless it is won before.
const raceTime = 2 * time.Second

// raceAddress connects to a server inside, while another thread writes the
// address of the one outside into the same memory.
func raceAddress(dir string) error {
	inside := filepath.Join(dir, fmt.Sprintf("inside-%d", time.Now().UnixNano()))
	ln, err := net.Listen("unix", inside)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("inside"))
			c.Close()
		}
	}()
	good, evil := rawUnix(inside), rawUnix(filepath.Join(dir, "s"))
	shared := good
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		for !stop.Load() {
			copy(shared[:], evil[:])
			copy(shared[:], good[:])
		}
	})
	defer func() { stop.Store(true); wg.Wait() }()
	for start := time.Now(); time.Since(start) < raceTime; {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&shared)), uintptr(len(shared)))
		heard := e == 0 && heardOutside(fd)
		unix.Close(fd)
		if heard {
			return nil
		}
	}
	return errors.New("never connected outside")
}

// raceDescriptor connects an inet socket, while another thread puts a unix socket
// under the same number, and a path into the same memory.
func raceDescriptor(dir string) error {
	const number = 900
	evil := rawUnix(filepath.Join(dir, "s"))
	good := [110]byte{unix.AF_INET, 0, 0, 9, 127, 0, 0, 1}
	shared := good
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer func() { stop.Store(true); wg.Wait() }()
	inet, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	var current atomic.Int64
	wg.Go(func() {
		runtime.LockOSThread()
		for !stop.Load() {
			copy(shared[:], good[:])
			unix.Dup3(inet, number, 0)
			copy(shared[:], evil[:])
			unix.Dup3(int(current.Load()), number, 0)
			unix.Getuid() // a moment in which it would work
		}
	})
	for start := time.Now(); time.Since(start) < raceTime; {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		current.Store(int64(fd))
		for range 20 {
			unix.Syscall(unix.SYS_CONNECT, number, uintptr(unsafe.Pointer(&shared)), 110)
		}
		if _, err := unix.Getpeername(fd); err == nil && heardOutside(fd) {
			return nil
		}
		current.Store(int64(inet))
		unix.Close(fd)
	}
	return errors.New("never connected outside")
}

// racePath connects by a name that another thread moves between a socket inside
// and the one outside.
func racePath(dir string) error {
	inside, name := filepath.Join(dir, fmt.Sprintf("inside-%d", time.Now().UnixNano())), filepath.Join(dir, "name")
	ln, err := net.Listen("unix", inside)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer func() { stop.Store(true); wg.Wait() }()
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			target := inside
			if i%2 == 0 {
				target = filepath.Join(dir, "s")
			}
			os.Symlink(target, name+".new")
			os.Rename(name+".new", name)
		}
	})
	for start := time.Now(); time.Since(start) < raceTime; {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: name})
		heard := err == nil && heardOutside(fd)
		unix.Close(fd)
		if heard {
			return nil
		}
	}
	return errors.New("never connected outside")
}

// socketsInside does what programs do with sockets of their own: "ip" for TCP, else
// a directory for unix sockets.
func socketsInside(dir string) error {
	if dir == "ip" {
		return insideTCP()
	}
	for name, try := range map[string]func(string) error{
		"stream": insideStream, "datagram": insideDatagram, "full backlog": insideBacklog,
		"relative": insideRelative, "refused": insideRefused,
	} {
		sub, err := os.MkdirTemp(dir, "in")
		if err == nil {
			err = try(sub)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func insideStream(dir string) error {
	for _, path := range []string{filepath.Join(dir, "s"), "/tmp/s", "@abstract"} {
		ln, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		if err := connectUnix(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		ln.Close()
	}
	return nil
}

func insideDatagram(dir string) error {
	path := filepath.Join(dir, "d")
	c, err := net.ListenPacket("unixgram", path)
	if err != nil {
		return err
	}
	defer c.Close()
	return func() error {
		d, err := net.Dial("unixgram", path)
		if err == nil {
			_, err = d.Write([]byte("x"))
		}
		return err
	}()
}

// insideBacklog connects with blocking sockets to a server that is slow.
func insideBacklog(dir string) error {
	path := filepath.Join(dir, "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 3)); err != nil {
		return err
	}
	if err := connectUnix(path); err != nil { // and so it is known
		return err
	}
	const clients = 20
	done := make(chan error, clients)
	for range clients {
		go func() {
			c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = unix.Connect(c, &unix.SockaddrUnix{Name: path})
			}
			done <- err
		}()
	}
	time.Sleep(100 * time.Millisecond) // polling: until they wait, which nothing tells
	sub, err := os.MkdirTemp(dir, "while")
	if err == nil {
		err = insideStream(sub)
	}
	if err != nil {
		return fmt.Errorf("while others wait: %w", err)
	}
	go func() {
		for {
			if _, _, err := unix.Accept(fd); err != nil {
				return
			}
		}
	}()
	for range clients {
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

func insideRelative(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	ln, err := net.Listen("unix", "r")
	if err != nil {
		return err
	}
	defer ln.Close()
	for _, path := range []string{"r", "./r", "../" + filepath.Base(dir) + "/r", "/proc/self/cwd/r"} {
		if err := connectUnix(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func insideRefused(dir string) error {
	for want, path := range map[unix.Errno]string{unix.ENOENT: filepath.Join(dir, "none"), unix.ECONNREFUSED: "/etc/passwd"} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); !errors.Is(err, want) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("%s: %w, want %w", path, err, want)
		}
	}
	if err := unix.Connect(999, &unix.SockaddrUnix{Name: "/x"}); !errors.Is(err, unix.EBADF) {
		return fmt.Errorf("no descriptor: %w", err)
	}
	if err := unix.Connect(1, &unix.SockaddrUnix{Name: "/x"}); !errors.Is(err, unix.ENOTSOCK) {
		return fmt.Errorf("no socket: %w", err)
	}
	return nil
}

// insideTCP connects a blocking and a non-blocking socket to a server inside, and
// one to nobody.
func insideTCP() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if c, err := net.Dial("tcp", ln.Addr().String()); err != nil {
		return err
	} else {
		c.Close()
	}
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	for _, want := range []error{nil, unix.ECONNREFUSED} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(fd, to); !errors.Is(err, want) {
			return fmt.Errorf("blocking: %w, want %w", err, want)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			return fmt.Errorf("flags %#x, %w", flags, err)
		}
		unix.Close(fd)
		ln.Close()
	}
	return nil
}
