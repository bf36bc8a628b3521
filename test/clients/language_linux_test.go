//go:build system

package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The run-times' own HTTP clients, without a library that knows of gates.

const nodeFetch = `fetch(process.argv[1]).then(r => r.text()).then(t => console.log('got', t)).catch(e => { console.error('failed:', e.message, e.cause && e.cause.message); process.exit(1) })`

// nodeEvents tells when each event of a stream arrived.
const nodeEvents = `
const began = Date.now(); let text = '', times = [];
const r = await fetch(process.argv[2]);
const d = new TextDecoder();
for await (const part of r.body) { text += d.decode(part, {stream: true}); times.push(Date.now() - began) }
const spread = times[times.length - 1] - times[0];
console.log(text.split('\n\n').filter(x => x).length, 'events', spread >= 400 ? 'as they came' : 'held back: ' + times);
`

// nodeSocket speaks WebSocket with node:https alone: node 20 has no client of
// its own, and a proxy needs none that knows it.
const nodeSocket = `
import https from 'node:https';
import crypto from 'node:crypto';
const req = https.request(process.argv[2], {headers: {Connection: 'Upgrade', Upgrade: 'websocket', Origin: 'https://web.test', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': crypto.randomBytes(16).toString('base64')}});
req.on('upgrade', (res, socket, head) => {
  const say = Buffer.from('echo me'), mask = Buffer.from([1, 2, 3, 4]);
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | say.length]), mask, say.map((b, i) => b ^ mask[i % 4])]));
  socket.on('data', d => { console.log('frame', d.subarray(2).toString()); socket.destroy() });
});
req.on('response', r => { console.error('no upgrade', r.statusCode); process.exit(1) });
req.on('error', e => { console.error(e.message); process.exit(1) });
req.end();
`

const pythonRequests = `
import requests, sys
try:
    s = requests.Session()
    for _ in range(2):
        r = s.get(sys.argv[1], timeout=20); r.raise_for_status()
    print("got", r.text)
except requests.RequestException as e:
    sys.exit("requests: %s" % e)
`

const pythonAiohttp = `
import aiohttp, asyncio, ssl, sys
async def main():
    # aiohttp reads proxy variables only when it is told to trust them.
    async with aiohttp.ClientSession(trust_env=True) as s:
        async with s.get(sys.argv[1], ssl=ssl.create_default_context(cafile=sys.argv[2])) as r:
            print("got", await r.text())
try:
    asyncio.run(main())
except aiohttp.ClientError as e:
    sys.exit("aiohttp: %s" % e)
`

const pythonEvents = `
import requests, sys, time
began, times, n = time.time(), [], 0
with requests.get(sys.argv[1], stream=True, timeout=20) as r:
    for line in r.iter_lines(chunk_size=1):
        if line.startswith(b"data:"):
            n += 1; times.append(time.time() - began)
print(n, "events", "as they came" if times[-1] - times[0] > 0.4 else "held back: %s" % times)
`

const javaFetch = `
import java.net.URI;
import java.net.http.*;
public class Fetch {
    public static void main(String[] a) throws Exception {
        try {
            var c = HttpClient.newHttpClient();
            var r = c.send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString());
            System.out.println("got " + r.statusCode() + " " + r.version() + " " + r.body());
            if (r.statusCode() != 200) System.exit(1);
        } catch (java.io.IOException e) {
            System.err.println("failed: " + e);
            System.exit(1);
        }
    }
}
`

func TestLanguages(t *testing.T) {
	hello, nowhere := url(webHost, "hello"), url(deniedHost, "hello")
	for _, c := range []client{
		{
			// Node reads proxy variables from 24 on; before, it is captured.
			name: "node fetch", needs: []string{"node"}, rules: []string{webHost}, env: []string{"NODE_EXTRA_CA_CERTS={ca}"}, perhapsDeaf: true,
			argv: []string{"node", "-e", nodeFetch, hello}, want: `got hello from the origin`,
			denied: []string{"node", "-e", nodeFetch, nowhere}, refusal: `failed: .*(ENOTFOUND|403)`,
		},
		{
			name: "node server-sent events", needs: []string{"node"}, rules: []string{webHost}, env: []string{"NODE_EXTRA_CA_CERTS={ca}"}, perhapsDeaf: true,
			setup: script("events.mjs", nodeEvents), argv: []string{"node", "events.mjs", url(webHost, "sse")}, want: `3 events as they came`,
		},
		{
			name: "node websocket", needs: []string{"node"}, rules: []string{webHost}, env: []string{"NODE_EXTRA_CA_CERTS={ca}"}, perhapsDeaf: true,
			setup: script("socket.mjs", nodeSocket), argv: []string{"node", "socket.mjs", url(webHost, "ws")}, want: `frame echo me`,
		},
		{
			name: "python requests", needs: []string{python}, rules: []string{webHost}, env: []string{"REQUESTS_CA_BUNDLE={ca}"},
			setup: needModule("requests"),
			argv:  []string{python, "-c", pythonRequests, hello}, want: `got hello from the origin`,
			denied: []string{python, "-c", pythonRequests, nowhere}, refusal: `requests: .*(403 Blocked by egressd: denied.test:443|Name or service not known)`,
		},
		{
			name: "python requests http", needs: []string{python}, rules: []string{webHost}, setup: needModule("requests"),
			argv: []string{python, "-c", pythonRequests, "http://" + webHost + "/hello"}, want: `got hello from the origin`,
			denied: []string{python, "-c", pythonRequests, "http://" + deniedHost + "/hello"}, refusal: `requests: .*(403|Name or service not known)`,
		},
		{
			name: "python server-sent events", needs: []string{python}, rules: []string{webHost}, env: []string{"REQUESTS_CA_BUNDLE={ca}"},
			setup: needModule("requests"), argv: []string{python, "-c", pythonEvents, url(webHost, "sse")}, want: `3 events as they came`,
		},
		{
			name: "python server-sent events http", needs: []string{python}, rules: []string{webHost},
			setup: needModule("requests"), argv: []string{python, "-c", pythonEvents, "http://" + webHost + "/sse"}, want: `3 events as they came`,
		},
		{
			name: "python aiohttp", needs: []string{python}, rules: []string{webHost}, setup: needModule("aiohttp"),
			argv: []string{python, "-c", pythonAiohttp, hello, "{ca}"}, want: `got hello from the origin`,
			denied: []string{python, "-c", pythonAiohttp, nowhere, "{ca}"}, refusal: `aiohttp: .*(403|Name or service not known|Cannot connect to host)`,
		},
		{
			name: "java HttpClient", needs: []string{"java", "javac", "keytool"}, rules: []string{webHost}, setup: compileJava,
			argv: []string{"java", "-XX:TieredStopAtLevel=1", "-Djavax.net.ssl.trustStore={home}/trust.p12", "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", "{home}", "Fetch", hello}, want: `got 200 HTTP_2 hello from the origin`,
			denied: []string{"java", "-XX:TieredStopAtLevel=1", "-cp", "{home}", "Fetch", nowhere}, refusal: `failed: java.*(403|Exception)`,
		},
	} {
		c.run(t)
	}
}

// python is the system's interpreter, for which distributions package
// requests and aiohttp.
const python = "/usr/bin/python3"

// script writes a file into the home directory.
func script(name, text string) func(*testing.T, person, string) []string {
	return func(t *testing.T, _ person, home string) []string {
		t.Helper()
		write(t, filepath.Join(home, name), text)
		return nil
	}
}

func needModule(name string) func(*testing.T, person, string) []string {
	return func(t *testing.T, _ person, _ string) []string {
		t.Helper()
		if err := exec.CommandContext(t.Context(), python, "-c", "import "+name).Run(); err != nil {
			t.Skipf("%s has no module %s", python, name)
		}
		return nil
	}
}

// compileJava makes Fetch.class, and a trust store with the tests' CA.
func compileJava(t *testing.T, _ person, home string) []string {
	t.Helper()
	write(t, filepath.Join(home, "Fetch.java"), javaFetch)
	if out, err := exec.CommandContext(t.Context(), "javac", "-d", home, filepath.Join(home, "Fetch.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	trustStore(t, home)
	return nil
}

// trustStore makes trust.p12 for Java, with the tests' CA.
func trustStore(t *testing.T, home string) {
	t.Helper()
	argv := []string{"keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", env.world.ca.file, "-storetype", "PKCS12", "-keystore", filepath.Join(home, "trust.p12"), "-storepass", "changeit"}
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
