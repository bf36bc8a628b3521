package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

const (
	realClients = "a client reaches an allowed host"
	refused     = "a client reaches another host"
)

// client is a program as people use it: with no flag about proxies unless its name says so.
type client struct {
	name    string
	version string // a command that prints it
	script  string // {H} is the host, {CA} a file with its authority; it prints the greeting, or says WORKS
	// asks: it only looks a name up. It has come through when the name server outside was asked.
	asks bool
}

const (
	nodeVersion   = "node --version"
	pythonVersion = "/usr/bin/python3 --version"
	python        = "/usr/bin/python3 -c '%s' {H}"
	sshFlags      = "-i ../../key -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=10"
)

// module is a Python client, and what tells its version.
func module(name, title, code string) client {
	return client{
		name: title, version: "/usr/bin/python3 -c 'import " + name + "; print(" + name + ".__version__)'",
		script: fmt.Sprintf(python, code),
	}
}

// clients are the rows of the comparison.
func clients() []client {
	list := []client{
		{name: "curl", version: "curl --version", script: "curl -sS -m 15 --cacert {CA} https://{H}/hello"},
		{name: "curl, told to use no proxy", version: "curl --version", script: "curl -sS -m 15 --noproxy '*' --cacert {CA} https://{H}/hello"},
		{name: "wget", version: "wget --version", script: "wget -qO- -T 15 -t 1 --ca-certificate={CA} https://{H}/hello || wget -nv -O- -T 15 -t 1 --ca-certificate={CA} https://{H}/hello"},
		{name: "HTTPie", version: "http --version", script: "http --check-status --timeout 15 --verify {CA} --ignore-stdin https://{H}/hello"},
		{name: "aria2", version: "aria2c --version", script: "aria2c -n --no-conf --async-dns=false --ca-certificate={CA} -t 15 -m 1 -o got https://{H}/hello && cat got"},
		{name: "lynx", version: "lynx --version", script: "SSL_CERT_FILE={CA} lynx -dump https://{H}/hello"},
		{name: "w3m", version: "w3m -version", script: "w3m -o ssl_ca_file={CA} -dump https://{H}/hello"},
		{name: "lftp", version: "lftp --version", script: "lftp -c 'set ssl:ca-file {CA}; set net:timeout 10; set net:max-retries 1; cat https://{H}/hello'"},
		{name: "OpenSSL s_client", version: "openssl version", script: "printf 'GET /hello HTTP/1.0\\r\\nHost: {H}\\r\\n\\r\\n' | timeout 15 openssl s_client -quiet -CAfile {CA} -verify_return_error -servername {H} -connect {H}:443"},
		{name: "Chromium, headless", version: "chromium --version", script: "timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=$PWD/profile --ignore-certificate-errors --dump-dom https://{H}/hello 2>&1"},
		{name: "Node fetch", version: nodeVersion, script: "NODE_EXTRA_CA_CERTS={CA} node -e 'fetch(process.argv[1]).then(r => r.text()).then(console.log, e => { console.error(e, e.cause); process.exit(1) })' https://{H}/hello"},
		{name: "Node https", version: nodeVersion, script: "NODE_EXTRA_CA_CERTS={CA} node -e 'require(\"https\").get(process.argv[1], r => r.pipe(process.stdout)).on(\"error\", e => { console.error(e.message); process.exit(1) })' https://{H}/hello"},
		{name: "Node http2", version: nodeVersion, script: "NODE_EXTRA_CA_CERTS={CA} node -e 'const c = require(\"http2\").connect(process.argv[1]); const fail = e => { console.error(e.message); process.exit(1) }; c.on(\"error\", fail); const r = c.request({\":path\": \"/hello\"}); r.on(\"error\", fail); r.on(\"data\", d => process.stdout.write(d)); r.on(\"end\", () => c.close()); r.end()' https://{H}"},
		{name: "Python urllib", version: pythonVersion, script: "SSL_CERT_FILE={CA} " + fmt.Sprintf(python, `import sys, urllib.request; print(urllib.request.urlopen("https://%s/hello" % sys.argv[1], timeout=15).read())`)},
		module("requests", "Python requests", `import sys, requests; r = requests.get("https://%s/hello" % sys.argv[1], timeout=15, verify="{CA}"); r.raise_for_status(); print(r.text)`),
		module("httpx", "Python httpx", `import sys, httpx; r = httpx.get("https://%s/hello" % sys.argv[1], timeout=15, verify="{CA}"); r.raise_for_status(); print(r.text)`),
		module("aiohttp", "Python aiohttp", `import sys, ssl, asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession() as s:
        async with s.get("https://%s/hello" % sys.argv[1], ssl=ssl.create_default_context(cafile="{CA}")) as r:
            print(await r.text())
asyncio.run(main())`),
		module("urllib3", "Python urllib3", `import sys, urllib3; r = urllib3.PoolManager(ca_certs="{CA}").request("GET", "https://%s/hello" % sys.argv[1], timeout=15, retries=False); print(r.status, r.data)`),
		module("websockets", "Python websockets", `import sys, ssl, asyncio, websockets
async def main():
    async with websockets.connect("wss://%s/ws" % sys.argv[1], origin="https://%s" % sys.argv[1], ssl=ssl.create_default_context(cafile="{CA}")) as s:
        print(await s.recv())
asyncio.run(main())`),
		{name: "Python smtplib", version: pythonVersion, script: fmt.Sprintf(python, `import sys, smtplib; s = smtplib.SMTP(sys.argv[1], 587, timeout=15); print(s.helo("me")); s.quit()`)},
		{name: "Ruby net/http", version: "ruby --version", script: "SSL_CERT_FILE={CA} ruby -rnet/http -e 'puts Net::HTTP.get_response(URI(ARGV[0])).then { |r| r.value; r.body }' https://{H}/hello"},
		{name: "Perl LWP", version: "perl -MLWP -e 'print \"$LWP::VERSION\\n\"'", script: "PERL_LWP_SSL_CA_FILE={CA} perl -MLWP::UserAgent -e '$u = LWP::UserAgent->new(env_proxy => 1, timeout => 15); $r = $u->get(shift); print $r->status_line, $r->decoded_content; exit !$r->is_success' https://{H}/hello"},
		{name: "PHP streams", version: "php --version", script: "php -r 'exit((int)!print(file_get_contents($argv[1], false, stream_context_create([\"ssl\" => [\"cafile\" => \"{CA}\"]]))));' https://{H}/hello"},
		{name: "PHP curl", version: "php --version", script: "php -r '$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_CAINFO, \"{CA}\"); curl_setopt($c, CURLOPT_TIMEOUT, 15); if (!curl_exec($c)) { echo curl_error($c); exit(1); }' https://{H}/hello"},
		{name: "Java HttpClient", version: "java --version", script: "java -XX:TieredStopAtLevel=1 -Xshare:auto Fetch.java http://{H}/hello"},
		{name: "Go net/http", version: "go version", script: "SSL_CERT_FILE={CA} {A} get https://{H}/hello"},
		{name: "pip", version: "/usr/bin/python3 -m pip --version", script: "/usr/bin/python3 -m pip install --break-system-packages --no-cache-dir --disable-pip-version-check --retries 0 --timeout 15 --cert {CA} --target lib --index-url https://{H}/simple hello-egress && cat lib/hello_egress.py"},
		{name: "npm", version: "npm --version", script: "npm view --cafile {CA} --cache $PWD/cache --fetch-retries 0 --no-update-notifier --registry https://{H}/npm/ hello-egress description"},
		{name: "go mod", version: "go version", script: "printf 'module x\\n\\ngo 1.21\\n' >go.mod; SSL_CERT_FILE={CA} GOPROXY=https://{H}/go GONOSUMDB='*' GOFLAGS='-mod=mod -modcacherw' GOTOOLCHAIN=local GOTELEMETRY=off GOMODCACHE=$PWD/mod GOCACHE=$PWD/cache go mod download example.test/hello@v1.0.0 && cat mod/example.test/hello@v1.0.0/hello.go"},
		{name: "git over HTTPS", version: "git --version", script: "timeout 20 git -c http.sslCAInfo={CA} clone -q https://{H}/repo.git c && git -C c log --oneline"},
		{name: "git over SSH", version: "git --version", script: "timeout 20 env GIT_SSH_COMMAND=\"${GIT_SSH_COMMAND:-ssh} " + sshFlags + "\" git clone -q ssh://root@{H}{REPO} c && git -C c log --oneline"},
		{name: "ssh", version: "ssh -V 2>&1", script: "timeout 20 ssh -n " + sshFlags + " root@{H} echo " + greeting},
		{name: "scp", version: "ssh -V 2>&1", script: "timeout 20 scp -q " + sshFlags + " root@{H}:{REPO}/HEAD got && echo WORKS"},
		{name: "rsync over SSH", version: "rsync --version", script: "timeout 20 rsync -e 'ssh " + sshFlags + "' root@{H}:{REPO}/HEAD got && echo WORKS"},
		{name: "psql", version: "psql --version", script: "PGCONNECT_TIMEOUT=10 PGSSLMODE=prefer psql -h {H} -U tester -d db -tAc 'select text'"},
		{name: "redis-cli", version: "redis-cli --version", script: "timeout 15 redis-cli -h {H} PING"},
		{name: "mosquitto_pub (MQTT)", version: "mosquitto_pub --version; true", script: "timeout 15 mosquitto_pub -h {H} -t a -m b && echo WORKS"},
		{name: "nc", version: "dpkg-query -W -f '${Version}\\n' netcat-openbsd", script: "timeout 10 nc -w 5 {H} 7777 </dev/null"},
		{name: "socat", version: "socat -V | sed -n 2p", script: "timeout 10 socat -u TCP:{H}:7777,connect-timeout=5 -"},
		{name: "telnet", version: "dpkg-query -W -f '${Version}\\n' inetutils-telnet", script: "(sleep 2) | timeout 10 telnet {H} 7777"},
		{name: "bash, /dev/tcp", version: "bash --version", script: "timeout 10 bash -c 'exec 3<>/dev/tcp/{H}/7777; cat <&3'"},
		{name: "Python socket", version: pythonVersion, script: fmt.Sprintf(python, `import sys, socket; s = socket.create_connection((sys.argv[1], 7777), 10); print(s.recv(99))`)},
		{name: "dig", version: "dig -v 2>&1", asks: true, script: "dig +time=2 +tries=1 +noall +answer +comments {H} A; dig +short +time=2 +tries=1 {H} A | grep -q '^[0-9.]*$' && echo WORKS"},
		{name: "host", version: "host -V 2>&1", asks: true, script: "timeout 10 host -W 2 -t A {H} && echo WORKS"},
		{name: "getent", version: "getent --version", asks: true, script: "timeout 10 getent ahostsv4 {H} && echo WORKS"},
	}
	return list
}

const javaFetch = `import java.net.URI;
import java.net.http.*;
public class Fetch {
    public static void main(String[] a) throws Exception {
        var r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString());
        System.out.println(r.statusCode() + " " + r.body());
    }
}
`

// clientAttacks are each client twice: towards the host that is allowed, and towards another.
func clientAttacks(repo string) []attack {
	var list []attack
	for _, c := range clients() {
		script := strings.NewReplacer("{CA}", systemRoots, "{REPO}", repo).Replace(c.script)
		works := func(a *attempt) bool {
			return bytes.Contains(a.stdout, []byte(greeting)) || bytes.Contains(a.stdout, []byte("WORKS"))
		}
		come := func(a *attempt) bool { return a.lab.heard(touched) }
		if c.asks {
			come = func(a *attempt) bool { return a.lab.heard("query denied.test\n") }
		}
		list = append(list,
			attack{group: realClients, name: c.name, needs: lab, setup: furnishClient, script: strings.ReplaceAll(script, "{H}", "allowed.test"), check: works},
			attack{group: refused, name: c.name, needs: lab, setup: furnishClient, script: strings.ReplaceAll(script, "{H}", "denied.test"), check: come})
	}
	return list
}

// furnishClient puts what clients need beside them: a key, and a program.
func furnishClient(a *attempt) error {
	key, err := os.ReadFile(a.lab.key)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.RemoveAll(a.ws + "/.git"); err != nil { // which is no real one
		return err
	}
	if err := put(a.ws, "Fetch.java", javaFetch); err != nil {
		return err
	}
	return put(a.base, "key", string(key))
}

// said is what a client prints when it was told why: words of a sandbox, not of a network that fails.
var said = regexp.MustCompile(`(?i)egressd|allow ?list|blocked by|no rule allows|not in the allowed`)

// versions asks each client once for its own, with a home that is gone afterwards.
func versions(ctx context.Context, search string) map[string]string {
	all := map[string]string{}
	home, err := os.MkdirTemp("", "versions-")
	if err != nil {
		return all
	}
	defer os.RemoveAll(home)
	for _, c := range clients() {
		cmd := exec.CommandContext(ctx, "sh", "-c", c.version)
		cmd.Env = []string{"PATH=" + search, "HOME=" + home, "GOTOOLCHAIN=local"}
		text, err := cmd.Output()
		if err != nil {
			continue // it is not here: its control says so
		}
		all[c.name] = number.FindString(string(text))
	}
	return all
}
