package records

import (
	"errors"
	"time"
)

// accountsFile holds which account a workspace's own credentials name.
const accountsFile = "accounts.json"

type accounts struct {
	Version  int                `json:"version"`
	Accounts map[string]account `json:"accounts"` // by workspace
}

type account struct {
	Name string    `json:"account"`
	Used time.Time `json:"used"`
}

// maxAccounts bounds the workspaces; the one used longest ago goes first.
const maxAccounts = 10_000

// Account remembers the account that a workspace's own credentials name, and
// reports the one that it named before: "" the first time. A workspace whose
// account is another one is left as it was.
func (s *Store) Account(workspace, name string) (before string, err error) {
	err = s.locked(".", func() error {
		all, err := read(s, accountsFile, func(a *accounts) int { return a.Version })
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if all.Accounts == nil {
			all = accounts{Version: version, Accounts: map[string]account{}}
		}
		before = all.Accounts[workspace].Name
		if before != "" && before != name {
			return nil
		}
		if before == "" && len(all.Accounts) >= maxAccounts {
			oldest := ""
			for w, a := range all.Accounts {
				if oldest == "" || a.Used.Before(all.Accounts[oldest].Used) {
					oldest = w
				}
			}
			delete(all.Accounts, oldest)
		}
		all.Accounts[workspace] = account{Name: name, Used: s.now().UTC()}
		return s.write(accountsFile, all)
	})
	return before, err
}
