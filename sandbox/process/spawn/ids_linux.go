package spawn

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// ids is what a user namespace knows.
type ids struct {
	uid, gid  []syscall.SysProcIDMap
	setgroups bool
}

// ownIDs maps ids to themselves: one user for an ordinary user, everything for
// root, so that "ls -l" inside tells the truth.
func ownIDs() (m ids, err error) {
	if uid, gid := syscall.Getuid(), syscall.Getgid(); syscall.Geteuid() != 0 {
		m.uid = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		m.gid = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		return m, nil
	}
	m.setgroups = true
	if m.uid, err = identity("/proc/self/uid_map"); err != nil {
		return m, err
	}
	m.gid, err = identity("/proc/self/gid_map")
	return m, err
}

// identity maps every id that this namespace knows to itself.
func identity(path string) ([]syscall.SysProcIDMap, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var maps []syscall.SysProcIDMap
	numbers, ok := parse(data)
	if !ok || len(numbers)%3 != 0 {
		return nil, errors.New(path + ": not lines of three numbers")
	}
	for ; len(numbers) > 0; numbers = numbers[3:] {
		maps = append(maps, syscall.SysProcIDMap{ContainerID: numbers[0], HostID: numbers[0], Size: numbers[2]})
	}
	return maps, nil
}

// parse reads decimal numbers with white space between them. What would do it
// in fewer lines is initialised later than this runs.
func parse(text []byte) (numbers []int, ok bool) {
	inside := false
	for _, b := range text {
		digit := b >= '0' && b <= '9'
		switch {
		case digit && !inside:
			numbers = append(numbers, int(b-'0'))
		case digit:
			n := &numbers[len(numbers)-1]
			*n = *n*10 + int(b-'0')
		case b != ' ' && b != '\n':
			return nil, false
		}
		inside = digit
	}
	return numbers, true
}

// write writes the maps of process pid's user namespace.
func (m ids) write(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid)
	if !m.setgroups {
		if err := overwrite(dir+"/setgroups", "deny"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := overwrite(dir+"/uid_map", lines(m.uid)); err != nil {
		return err
	}
	return overwrite(dir+"/gid_map", lines(m.gid))
}

func lines(maps []syscall.SysProcIDMap) string {
	var b []byte
	for _, id := range maps {
		for i, n := range []int{id.ContainerID, id.HostID, id.Size} {
			b = append(strconv.AppendInt(b, int64(n), 10), " \n"[i/2])
		}
	}
	return string(b)
}

// overwrite writes text with one call, as the kernel wants it.
func overwrite(path, text string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	if _, err := syscall.Write(fd, []byte(text)); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
