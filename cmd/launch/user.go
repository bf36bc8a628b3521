package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"egressd/sandbox/process"
)

// runAs reports whom the program runs as when launch is root: --user, else the
// user behind sudo, else nobody in particular (nil: root, behind the walls).
// env is what follows from it: HOME and the names of that user.
func runAs(name string, environ []string) (cred *process.Cred, env []string, err error) {
	if os.Geteuid() != 0 {
		if name != "" {
			return nil, nil, errors.New("--user: only root may run programs as somebody else")
		}
		return nil, nil, nil
	}
	var u *user.User
	switch sudo := lookup(environ, "SUDO_UID"); {
	case name != "":
		if u, err = user.Lookup(name); err != nil {
			if u, err = user.LookupId(name); err != nil {
				return nil, nil, fmt.Errorf("--user %q: no such user", name)
			}
		}
	case sudo != "" && sudo != "0":
		if u, err = user.LookupId(sudo); err != nil {
			return nil, nil, fmt.Errorf("SUDO_UID=%q: no such user: name one with --user", sudo)
		}
	default:
		return nil, nil, nil
	}
	if cred, err = credOf(u); err != nil {
		return nil, nil, err
	}
	return cred, []string{"HOME=" + u.HomeDir, "USER=" + u.Username, "LOGNAME=" + u.Username}, nil
}

func credOf(u *user.User) (*process.Cred, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	cred := new(process.Cred)
	for i, text := range append([]string{u.Uid, u.Gid}, ids...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("id %q of user %s: %w", text, u.Username, err)
		}
		switch i {
		case 0:
			cred.UID = uint32(n)
		case 1:
			cred.GID = uint32(n)
		default:
			cred.Groups = append(cred.Groups, uint32(n))
		}
	}
	return cred, nil
}
