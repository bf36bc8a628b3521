//go:build system

package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Package managers against tiny registries, each with one package.

func TestPackageManagers(t *testing.T) {
	servePyPI(t)
	serveNPM(t)
	serveGoProxy(t)
	serveCrates(t)
	serveMaven()
	for _, c := range []client{
		{
			name: "pip", needs: []string{python}, rules: []string{pypiHost}, setup: needModule("pip"),
			env:  []string{"PIP_CONFIG_FILE=/dev/null", "PIP_CERT={ca}", "PIP_DISABLE_PIP_VERSION_CHECK=1"},
			argv: []string{"sh", "-ec", python + ` -m pip install --no-cache-dir --root-user-action=ignore --target "$(mktemp -d)" --index-url ` + url(pypiHost, "simple") + ` hello-egress`}, want: `Successfully installed hello-egress-1.0`,
			denied: []string{python, "-m", "pip", "download", "--no-cache-dir", "--retries", "1", "--index-url", url(deniedHost, "simple"), "hello-egress"}, refusal: `(403|Name or service not known)`,
		},
		{
			name: "npm", needs: []string{"npm", "node"}, rules: []string{npmHost}, setup: script("package.json", `{"name":"x","version":"1.0.0"}`),
			env:  []string{"npm_config_cafile={ca}", "npm_config_fetch_retries=0", "npm_config_userconfig={home}/.npmrc", "npm_config_globalconfig={home}/npmrc", "npm_config_update_notifier=false"},
			argv: []string{"sh", "-ec", `cd "$(mktemp -d)"; npm install --no-audit --no-fund --cache "$PWD/cache" --registry ` + url(npmHost, "") + ` hello-egress && node -e 'console.log(require("hello-egress"))'`}, want: `hello from a package`,
			denied: []string{"npm", "view", "--registry", url(deniedHost, ""), "hello-egress"}, refusal: `npm (ERR!|error) .*(403|ENOTFOUND)`,
		},
		{
			name: "go", needs: []string{"go"}, rules: []string{goHost}, setup: script("go.mod", "module x\n\ngo 1.21\n\nrequire example.test/hello v1.0.0\n"),
			env:  []string{"SSL_CERT_FILE={ca}", "GOPROXY=" + url(goHost), "GONOSUMDB=*", "GOFLAGS=-mod=mod -modcacherw", "GOTOOLCHAIN=local", "GOTELEMETRY=off"},
			argv: []string{"sh", "-ec", `GOMODCACHE=$(mktemp -d) go mod download -json example.test/hello@v1.0.0`}, want: `"Sum": "h1:`,
			denied: []string{"sh", "-ec", `GOPROXY=` + url(deniedHost) + ` GOMODCACHE=$(mktemp -d) go mod download example.test/hello@v1.0.0`}, refusal: `(Blocked by egressd: denied.test:443|no such host)`,
		},
		{
			name: "cargo", needs: []string{"cargo"}, rules: []string{crateHost}, setup: cargoProject,
			env:  []string{"CARGO_HTTP_CAINFO={ca}", "CARGO_NET_RETRY=0", "RUSTUP_HOME=" + rustupHome()},
			argv: []string{"sh", "-ec", `export CARGO_HOME=$(mktemp -d); cp config.toml "$CARGO_HOME/"; rm -f Cargo.lock; cargo fetch`}, want: `Downloaded hello-egress v0.1.0`,
			denied: []string{"sh", "-ec", `export CARGO_HOME=$(mktemp -d); sed s/` + crateHost + `/` + deniedHost + `/ config.toml > "$CARGO_HOME/config.toml"; rm -f Cargo.lock; cargo fetch`}, refusal: `(403|Could(n't| not) resolve host)`,
		},
		{
			name: "pnpm", needs: []string{"pnpm", "node"}, rules: []string{npmHost}, setup: script("package.json", `{"name":"x","version":"1.0.0"}`),
			env:  []string{"npm_config_cafile={ca}", "NODE_EXTRA_CA_CERTS={ca}", "npm_config_fetch_retries=0", "npm_config_update_notifier=false"},
			argv: []string{"sh", "-ec", `cd "$(mktemp -d)"; echo '{"name":"x","version":"1.0.0"}' >package.json; pnpm add --store-dir "$PWD/store" --registry ` + url(npmHost, "") + ` hello-egress && node -e 'console.log(require("hello-egress"))'`}, want: `hello from a package`,
			denied: []string{"sh", "-ec", `cd "$(mktemp -d)"; echo '{"name":"x","version":"1.0.0"}' >package.json; pnpm add --store-dir "$PWD/store" --registry ` + url(deniedHost, "") + ` hello-egress`}, refusal: `(403|ENOTFOUND)`,
		},
		{
			name: "yarn", needs: []string{"yarn", "node"}, rules: []string{npmHost}, perhapsDeaf: true,
			env:  []string{"npm_config_cafile={ca}", "NODE_EXTRA_CA_CERTS={ca}"},
			argv: []string{"sh", "-ec", `cd "$(mktemp -d)"; echo '{"name":"x","version":"1.0.0"}' >package.json; yarn add --non-interactive --cache-folder "$PWD/cache" --registry ` + url(npmHost) + ` hello-egress && node -e 'console.log(require("hello-egress"))'`}, want: `hello from a package`,
			denied: []string{"sh", "-ec", `cd "$(mktemp -d)"; echo '{"name":"x","version":"1.0.0"}' >package.json; yarn add --non-interactive --network-timeout 5000 --cache-folder "$PWD/cache" --registry ` + url(deniedHost) + ` hello-egress`}, refusal: `(403|ENOTFOUND|tunneling socket|Blocked)`,
		},
		{
			name: "maven", needs: []string{"mvn", "java", "keytool"}, rules: []string{mavenHost}, setup: mavenProject,
			argv: mavenArgs("pom.xml"), want: `BUILD SUCCESS`,
			denied: mavenArgs("denied.xml"), refusal: `(403|Unknown host|Name or service not known)`,
		},
	} {
		c.run(t)
	}
}

// mavenArgs has a parent fetched, which no plug-in is needed for.
func mavenArgs(pom string) []string {
	return []string{
		"sh", "-ec", `mvn -B -e -f {home}/` + pom + ` -Dmaven.repo.local="$(mktemp -d)" ` +
			`-Djavax.net.ssl.trustStore={home}/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit validate`,
	}
}

func mavenProject(t *testing.T, _ person, home string) []string {
	t.Helper()
	const pom = `<project><modelVersion>4.0.0</modelVersion>
<parent><groupId>test.hello</groupId><artifactId>parent</artifactId><version>1.0</version><relativePath/></parent>
<artifactId>x</artifactId><packaging>pom</packaging>
<repositories><repository><id>central</id><url>%s</url></repository></repositories></project>
`
	write(t, filepath.Join(home, "pom.xml"), fmt.Sprintf(pom, url(mavenHost)))
	write(t, filepath.Join(home, "denied.xml"), fmt.Sprintf(pom, url(deniedHost)))
	trustStore(t, home)
	return nil
}

func serveMaven() {
	serve(mavenHost+"/test/hello/parent/1.0/parent-1.0.pom", "text/xml", []byte(
		"<project><modelVersion>4.0.0</modelVersion><groupId>test.hello</groupId><artifactId>parent</artifactId><version>1.0</version><packaging>pom</packaging></project>\n",
	))
}

// rustupHome is where cargo's chooser of tool chains keeps them, which hangs
// on the home directory unless it is named.
func rustupHome() string {
	if dir := os.Getenv("RUSTUP_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".rustup")
}

func cargoProject(t *testing.T, _ person, home string) []string {
	t.Helper()
	write(t, filepath.Join(home, "Cargo.toml"), "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nhello-egress = \"0.1\"\n")
	write(t, filepath.Join(home, "src", "main.rs"), "fn main() {}\n")
	write(t, filepath.Join(home, "config.toml"), "[source.crates-io]\nreplace-with = \"tests\"\n[source.tests]\nregistry = \"sparse+"+url(crateHost, "index", "")+"\"\n")
	return nil
}

func servePyPI(t *testing.T) {
	t.Helper()
	const info = "hello_egress-1.0.dist-info/"
	wheel := zipped(t, "",
		file{"hello_egress.py", "text = 'hello from a package'\n"},
		file{info + "METADATA", "Metadata-Version: 2.1\nName: hello-egress\nVersion: 1.0\n"},
		file{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		file{info + "RECORD", "hello_egress.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	)
	sum := sha256.Sum256(wheel)
	serve(pypiHost+"/simple/hello-egress/", "text/html", fmt.Appendf(nil,
		`<!doctype html><a href="/files/hello_egress-1.0-py3-none-any.whl#sha256=%s">hello_egress-1.0-py3-none-any.whl</a>`, hex.EncodeToString(sum[:])))
	serve(pypiHost+"/files/hello_egress-1.0-py3-none-any.whl", "application/zip", wheel)
}

func serveNPM(t *testing.T) {
	t.Helper()
	tgz := tarball(t, "package/",
		file{"package.json", `{"name":"hello-egress","version":"1.0.0","main":"index.js"}`},
		file{"index.js", "module.exports = 'hello from a package'\n"},
	)
	sum := sha512.Sum512(tgz)
	serve(npmHost+"/hello-egress", "application/json", fmt.Appendf(nil,
		`{"name":"hello-egress","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"hello-egress","version":"1.0.0","dist":{"tarball":%q,"integrity":"sha512-%s"}}}}`,
		url(npmHost, "hello-egress/-/hello-egress-1.0.0.tgz"), base64.StdEncoding.EncodeToString(sum[:])))
	serve(npmHost+"/hello-egress/-/hello-egress-1.0.0.tgz", "application/octet-stream", tgz)
}

func serveGoProxy(t *testing.T) {
	t.Helper()
	const dir, mod = goHost + "/example.test/hello/@v/", "module example.test/hello\n\ngo 1.21\n"
	serve(dir+"list", "text/plain", []byte("v1.0.0\n"))
	serve(dir+"v1.0.0.info", "application/json", []byte(`{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}`))
	serve(dir+"v1.0.0.mod", "text/plain", []byte(mod))
	serve(dir+"v1.0.0.zip", "application/zip", zipped(t, "example.test/hello@v1.0.0/",
		file{"go.mod", mod}, file{"hello.go", "package hello\n\nconst Text = \"hello from a package\"\n"}))
}

func serveCrates(t *testing.T) {
	t.Helper()
	crate := tarball(t, "hello-egress-0.1.0/",
		file{"Cargo.toml", "[package]\nname = \"hello-egress\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"},
		file{"src/lib.rs", "pub const TEXT: &str = \"hello from a package\";\n"},
	)
	sum := sha256.Sum256(crate)
	serve(crateHost+"/index/config.json", "application/json", fmt.Appendf(nil, `{"dl":%q}`, url(crateHost, "dl")))
	serve(crateHost+"/index/he/ll/hello-egress", "text/plain", fmt.Appendf(nil,
		`{"name":"hello-egress","vers":"0.1.0","deps":[],"cksum":"%s","features":{},"yanked":false}`+"\n", hex.EncodeToString(sum[:])))
	serve(crateHost+"/dl/hello-egress/0.1.0/download", "application/gzip", crate)
}

// serve adds a fixed answer to the world.
func serve(pattern, contentType string, body []byte) {
	env.world.mux.HandleFunc(pattern, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", contentType)
		_, _ = rw.Write(body) // the client checks the sum
	})
}

type file struct{ name, text string }

func zipped(t *testing.T, prefix string, files ...file) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, f := range files {
		w, err := z.Create(prefix + f.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func tarball(t *testing.T, prefix string, files ...file) []byte {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	for _, f := range files {
		if err := tw.WriteHeader(&tar.Header{Name: prefix + f.name, Mode: 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
