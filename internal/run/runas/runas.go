// Package runas finds the user that a program runs as when root starts it.
package runas

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// User is whom to run as.
type User struct {
	UID, GID uint32
	Groups   []uint32
	Env      []string // HOME, USER and LOGNAME of that user
}

// Find reports whom the program runs as: the user called name (or with that
// uid), else the one behind sudo, sudoUID being its SUDO_UID. Nil means nobody
// else: the caller itself. euid is the caller's; only root may be somebody else.
func Find(name, sudoUID string, euid int) (*User, error) {
	switch {
	case euid != 0 && name != "":
		return nil, errors.New("--user: only root may run programs as somebody else")
	case euid != 0:
		return nil, nil
	case name != "":
		u, err := user.Lookup(name)
		if err != nil {
			if u, err = user.LookupId(name); err != nil {
				return nil, fmt.Errorf("--user %q: no such user", name)
			}
		}
		return describe(u)
	case sudoUID != "" && sudoUID != "0":
		u, err := user.LookupId(sudoUID)
		if err != nil {
			return nil, fmt.Errorf("SUDO_UID=%q: no such user: name one with --user", sudoUID)
		}
		return describe(u)
	}
	return nil, nil
}

func describe(u *user.User) (*User, error) {
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	out := &User{Env: []string{"HOME=" + u.HomeDir, "USER=" + u.Username, "LOGNAME=" + u.Username}}
	ids := make([]uint32, 0, 2+len(groups))
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("id %q of user %s: %w", text, u.Username, err)
		}
		ids = append(ids, uint32(n))
	}
	out.UID, out.GID, out.Groups = ids[0], ids[1], ids[2:]
	return out, nil
}
