//go:build !linux

package verify

import "errors"

func platformChecks(Config) ([]check, error) {
	return nil, errors.New("verify is for containers, on Linux")
}
