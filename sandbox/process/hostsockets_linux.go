package process

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
	"egressd/internal/linux/unixdiag"
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

// diagSockets asks the kernel, which knows the file behind each socket.
func diagSockets() (out []hostSocket, err error) {
	c, err := unixdiag.Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	err = c.Each(unixdiag.Any, func(s unixdiag.Socket) bool {
		out = append(out, hostSocket{path: s.Path, inode: s.Inode, device: mountinfo.DeviceName(s.Major, s.Minor)})
		return true
	})
	return out, err
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

// searchSockets finds sockets and FIFOs in dirs and below, nearest first. whole is false if
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
				case leadsOut(e.Type()):
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
