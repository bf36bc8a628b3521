//go:build system

package clients

import (
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cloneAndPush works in a new directory and pushes what it committed.
const cloneAndPush = `
set -e
work=$(mktemp -d)
cd "$work"
git clone -q "$1" copy
cd copy
git log -1 --format=%s
echo more >> file
git -c user.name=t -c user.email=t@example.test commit -qam "second"
git push -q origin "HEAD:refs/heads/$(basename "$work")"
echo pushed
`

func TestGit(t *testing.T) {
	need(t, people(t)[0], "git")
	repo := bareRepository(t)
	t.Run("https", func(t *testing.T) {
		serveGit(t, repo)
		client{
			name: "clone and push", needs: []string{"git"}, rules: []string{gitHost}, env: []string{"GIT_SSL_CAINFO={ca}"}, series: true,
			argv: []string{"sh", "-c", cloneAndPush, "sh", url(gitHost, "repo.git")}, want: `(?s)first.*pushed`,
			denied: []string{"git", "ls-remote", url(deniedHost, "repo.git")}, refusal: `fatal: unable to access .*(403|Could not resolve host)`,
		}.run(t)
	})
	t.Run("ssh", func(t *testing.T) {
		login, key, known := sshServer(t)
		command := "ssh -i {home}/key -o UserKnownHostsFile={home}/known -o StrictHostKeyChecking=yes -o BatchMode=yes -o IdentitiesOnly=yes"
		keys := func(t *testing.T, _ person, home string) []string {
			t.Helper()
			copyFile(t, key, filepath.Join(home, "key"))
			copyFile(t, known, filepath.Join(home, "known"))
			return nil
		}
		for _, c := range []client{
			{
				name: "clone and push", needs: []string{"git", "ssh"}, rules: []string{sshHost + ":22"}, setup: keys,
				env:  []string{"GIT_SSH_COMMAND=" + command},
				argv: []string{"sh", "-c", cloneAndPush, "sh", "ssh://" + login + "@" + sshHost + repo}, want: `(?s)first.*pushed`,
				denied: []string{"git", "ls-remote", "ssh://" + login + "@" + deniedHost + repo}, refusal: `ssh: Could not resolve hostname denied.test`,
			},
			{
				name: "command", needs: []string{"ssh"}, rules: []string{sshHost + ":22"}, setup: keys,
				argv: append(strings.Fields(command), login+"@"+sshHost, "echo $((6*7)) over ssh"), want: `42 over ssh`,
			},
		} {
			c.deaf, c.series = true, true
			c.run(t)
		}
	})
}

// bareRepository makes a repository with one commit that this process's user
// may push to.
func bareRepository(t *testing.T) string {
	t.Helper()
	self := people(t)[0]
	dir := self.home(t)
	repo := filepath.Join(dir, "repo.git")
	must(t, self, dir, "sh", "-ec", `
git init -q -b main work && cd work
echo text > file && git add file
git -c user.name=t -c user.email=t@example.test commit -qm first
cd .. && git clone -q --bare work repo.git
git -C repo.git config http.receivepack true`)
	return repo
}

// serveGit serves repo with git's own HTTP server, at git.test.
func serveGit(t *testing.T, repo string) {
	t.Helper()
	path := findProgram(t, "git-http-backend", "/usr/lib/git-core", "/usr/libexec/git-core")
	env.world.mux.Handle(gitHost+"/", &cgi.Handler{
		Path: path, Dir: filepath.Dir(repo),
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repo), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + filepath.Dir(repo)},
	})
}

// copyFile makes a copy that only its owner reads, as ssh wants its keys.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
