package secret

import (
	"encoding/base64"
	"testing"
)

func TestSecretInBasicCredentials(t *testing.T) {
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	equal(t, "as a password", reveal(basic("x-access-token:ph"), "ph", "worth"), basic("x-access-token:worth"))
	equal(t, "other credentials", reveal(basic("user:pass"), "ph", "worth"), basic("user:pass"))
	equal(t, "not base64", reveal("Basic ph!", "ph", "worth"), "Basic worth!")
}

func equal(t *testing.T, name, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}
