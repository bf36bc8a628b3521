package sandbox

import (
	"fmt"
	"strings"
	"testing"
)

func TestMissingCredentials(t *testing.T) {
	host := []string{
		"GITHUB_TOKEN=s", "GH_TOKEN=", "NPM_TOKEN=s", "AWS_PROFILE=dev", "AWS_SECRET_ACCESS_KEY=s", "CARGO_REGISTRIES_MINE_TOKEN=s",
		"PIP_INDEX_URL=https://user:pass@pypi.example.com/", "VERCEL_TOKEN=s", "DOCKER_AUTH_CONFIG={}", "GOOGLE_APPLICATION_CREDENTIALS=/k.json",
	}
	for _, tt := range []struct{ argv, env, want string }{
		{"gh|pr|list", "", "[{gh [GITHUB_TOKEN]}]"},
		{"/usr/bin/gh|pr|list", "", "[{gh [GITHUB_TOKEN]}]"},
		{"gh|pr|list", "GITHUB_TOKEN=x", "[]"},
		{"sh|-c|cd x && gh pr list", "", "[{gh [GITHUB_TOKEN]}]"},
		{"bash|-lc|npm ci; aws s3 ls", "", "[{npm [NPM_TOKEN]} {aws [AWS_PROFILE AWS_SECRET_ACCESS_KEY]}]"},
		{"env|A=b|cargo|publish", "", "[{cargo [CARGO_REGISTRIES_MINE_TOKEN]}]"},
		{"timeout|10|gcloud|info", "", "[{gcloud [GOOGLE_APPLICATION_CREDENTIALS]}]"},
		{"pip|install|x", "", "[{pip [PIP_INDEX_URL]}]"},
		{"vercel|deploy", "", "[{vercel [VERCEL_TOKEN]}]"},
		{"docker|pull|x", "", "[{docker [DOCKER_AUTH_CONFIG]}]"},
		{"make|gh", "", "[]"}, // an argument is no program
		{"echo|gh", "", "[]"},
		{"ghost", "", "[]"},
		{"", "", "[]"},
	} {
		if got := fmt.Sprint(MissingCredentials(host, strings.Split(tt.argv, "|"), []string{tt.env})); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.argv, got, tt.want)
		}
	}
}
