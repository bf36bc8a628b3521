// Package runas finds the user as whom root runs a program.
//
//	user, err := runas.Find(flag, os.Getenv("SUDO_UID"), os.Geteuid())
package runas

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// User is the user to run as.
type User struct {
	UID, GID uint32
	Groups   []uint32
	Env      []string // HOME, USER and LOGNAME of that user
}

// Find reports the user to run as: the one of that name or user ID, else the one
// behind sudo, whose ID is sudoUID. Nil is the caller itself. euid is the caller's
// ID: only root may run programs as another user.
func Find(name, sudoUID string, euid int) (*User, error) {
	switch {
	case euid != 0 && name != "":
		return nil, errors.New("--user: only root may run programs as another user: leave it out, or write sudo launch --user " + name)
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
