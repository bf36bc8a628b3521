package process

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
)

// hostSocket is one unix socket that is bound to a path.
type hostSocket struct {
	path   string // as it was given to bind: it may be relative, or renamed since
	device string // major:minor of its file system; "": unknown
	inode  uint32 // the low half; 0: unknown
}

// hostSockets lists the pathname sockets that this network namespace knows.
func hostSockets() ([]hostSocket, error) {
	found, err := diagSockets()
	if err != nil {
		return procSockets() // a kernel without unix_diag
	}
	return found, nil
}

// Constants of linux/sock_diag.h and linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	udiagShowName    = 1
	udiagShowVFS     = 2
	unixDiagName     = 0
	unixDiagVFS      = 1
	unixDiagMsgSize  = 16 // struct unix_diag_msg
)

// diagSockets asks the kernel, which knows the file behind each socket.
func diagSockets() ([]hostSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	// struct nlmsghdr, struct unix_diag_req
	req := make([]byte, unix.NLMSG_HDRLEN+24)
	binary.NativeEndian.PutUint32(req, uint32(len(req)))
	binary.NativeEndian.PutUint16(req[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := req[unix.NLMSG_HDRLEN:]
	body[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // sockets in every state
	binary.NativeEndian.PutUint32(body[12:], udiagShowName|udiagShowVFS)
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var out []hostSocket
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, err
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil || len(messages) == 0 {
			return nil, errors.Join(err, errors.New("unix_diag: a short answer"))
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return out, nil
			case unix.NLMSG_ERROR:
				return nil, errors.New("unix_diag: refused")
			}
			if s, ok := parseDiag(m.Data); ok {
				out = append(out, s)
			}
		}
	}
}

// parseDiag reads one struct unix_diag_msg with its attributes.
func parseDiag(b []byte) (s hostSocket, ok bool) {
	if len(b) < unixDiagMsgSize {
		return s, false
	}
	for b = b[unixDiagMsgSize:]; len(b) >= unix.NLA_HDRLEN; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.NLA_HDRLEN || size > len(b) {
			return s, false
		}
		value := b[unix.NLA_HDRLEN:size]
		switch {
		case kind == unixDiagName:
			s.path = string(bytes.TrimRight(value, "\x00"))
		case kind == unixDiagVFS && len(value) >= 8:
			s.inode = binary.NativeEndian.Uint32(value)
			dev := binary.NativeEndian.Uint32(value[4:]) // the kernel's own dev_t
			s.device = mountinfo.DeviceName(dev>>20, dev&(1<<20-1))
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	// Abstract names begin with a NUL; without a file there is nothing to reach.
	return s, s.path != "" && s.path[0] != 0 && s.device != ""
}

// procSockets reads the paths alone.
func procSockets() ([]hostSocket, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []hostSocket
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		// Num RefCount Protocol Flags Type St Inode Path
		w := strings.SplitN(strings.Join(strings.Fields(sc.Text()), " "), " ", 8)
		if len(w) == 8 && w[7] != "Path" && !strings.HasPrefix(w[7], "@") {
			out = append(out, hostSocket{path: w[7]})
		}
	}
	return out, sc.Err()
}

// inPlace reports whether s is where its path says, and nowhere else.
func (s hostSocket) inPlace() bool {
	if !filepath.IsAbs(s.path) {
		return false
	}
	var st unix.Stat_t
	if unix.Stat(s.path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Nlink > 1 {
		return false
	}
	return s.inode == 0 || s.inode == uint32(st.Ino)
}

// Bounds of the search for sockets whose path leads nowhere.
const searchFiles = 200_000

// searchSockets finds sockets in dirs and below, nearest first. whole is false if
// there were more than searchFiles files.
func searchSockets(dirs []string) (found []string, whole bool) {
	left := searchFiles
	for queue := dirs; len(queue) > 0; queue = queue[1:] {
		f, err := os.Open(queue[0])
		if err != nil {
			continue
		}
		for left > 0 {
			entries, err := f.ReadDir(min(left, 4096))
			left -= len(entries)
			for _, e := range entries {
				switch path := filepath.Join(queue[0], e.Name()); {
				case e.IsDir():
					queue = append(queue, path)
				case e.Type() == os.ModeSocket:
					found = append(found, path)
				}
			}
			if err != nil {
				break
			}
		}
		f.Close()
		if left <= 0 {
			return found, false
		}
	}
	return found, true
}
