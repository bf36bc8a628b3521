// Drives the official SDK against the double. Arguments: the directory that has
// the SDK, its name there, the double's address, an origin that the double
// leads origin.test to.
import assert from "node:assert/strict";
import http from "node:http";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [dir, name, base, originPort] = process.argv.slice(2);
const require = createRequire(dir + "/package.json");
const sdk = await import(pathToFileURL(require.resolve(name)));
const { Sandbox, Snapshot, APIError, StreamError } = sdk;
const three = name.endsWith("3");

// What the SDK offers and what of it succeeded at least once.
const offered = new Set(), driven = new Set();
const inner = ["constructor", "ensureClient", "client", "doResume", "withResume", "waitForStopAndResume", "resume", "resolveDefaultUser", "getCachedOutput"];
const watch = (object, label) => {
  for (const key of Object.getOwnPropertyNames(object)) {
    const d = Object.getOwnPropertyDescriptor(object, key);
    if (inner.includes(key) || key.startsWith("_") || !d.configurable || !(d.get || (d.writable && typeof d.value === "function"))) continue;
    const id = `${label}.${key}`;
    const ok = (v) => (driven.add(id), v);
    const noted = (f) => function (...args) {
      const v = f.apply(this, args);
      return v instanceof Promise ? v.then(ok) : ok(v);
    };
    offered.add(id);
    Object.defineProperty(object, key, d.get ? { ...d, get: noted(d.get) } : { ...d, value: noted(d.value) });
  }
};
for (const [label, C] of Object.entries(sdk)) {
  if (typeof C !== "function" || !C.prototype || /Error$/.test(label) || ["default", "defineSandboxProxy"].includes(label)) continue;
  watch(C.prototype, label);
  watch(C, label);
}

let step = "";
const real = globalThis.fetch;
const doubled = (url, init = {}) =>
  real(String(url).replace("https://vercel.com/api", base + "/api"), { ...init, headers: { ...init.headers, "x-double-step": step } });
const credentials = { token: "token", teamId: "team_x", projectId: "prj_x", fetch: doubled };
globalThis.fetch = doubled; // Snapshot.get of 2.2.0 forgets the fetch that it is given
const fault = (f) => real(base + "/_double/faults", { method: "POST", headers: { authorization: "Bearer token" }, body: JSON.stringify(f) });
const fails = async (status, code, promise) => {
  const err = await promise.then(() => assert.fail("no error"), (e) => e);
  assert.ok(err instanceof APIError, String(err));
  assert.equal(err.response.status, status);
  assert.equal(err.json?.error?.code, code);
};

let sb, snapshotId;
const steps = {
  async create() {
    sb = await Sandbox.create({
      ...credentials, name: "sdk-a", ports: [3000], timeout: 120_000, resources: { vcpus: 2 }, env: { FROM: "sandbox" },
      tags: { kind: "test" }, networkPolicy: "deny-all", snapshotExpiration: 86_400_000, ...(three ? {} : { runtime: "node22" }),
    });
    assert.equal(sb.name, "sdk-a");
    assert.equal(sb.status, "running");
    assert.equal(sb.timeout, 120_000);
    assert.equal(sb.networkPolicy ?? sb.currentSession().networkPolicy, "deny-all");
  },
  async command() {
    let out = "", err = "";
    const sink = (add) => new Writable({ write(c, _, cb) { add(String(c)); cb(); } });
    const done = await sb.runCommand({
      cmd: "sh", args: ["-c", "echo out1; echo err1 >&2; sleep 0.1; echo $FROM $OWN; exit 3"], env: { OWN: "command" },
      stdout: sink((t) => (out += t)), stderr: sink((t) => (err += t)),
    });
    assert.equal(done.exitCode, 3);
    assert.equal(await done.stdout(), "out1\nsandbox command\n");
    assert.equal(await done.stderr(), "err1\n");
    if (three) assert.deepEqual([out, err], ["out1\nsandbox command\n", "err1\n"]);
    assert.equal(await (await sb.runCommand({ cmd: "id", args: ["-u"], sudo: true, cwd: "/tmp" })).stdout(), "0\n");
  },
  async detached() {
    const cmd = await sb.runCommand({ cmd: "sh", args: ["-c", "for i in 1 2 3; do echo $i; sleep 0.05; done"], detached: true });
    assert.equal(cmd.exitCode, null);
    let text = "";
    for await (const log of cmd.logs()) text += `${log.stream}:${log.data}`;
    assert.equal(text.replaceAll("stdout:", ""), "1\n2\n3\n");
    assert.equal((await cmd.wait()).exitCode, 0);
    const same = await sb.getCommand(cmd.cmdId);
    assert.equal(same.exitCode, 0);
    assert.equal(same.cwd, sb.currentSession().cwd);
    assert.ok(same.startedAt > 0);
    assert.equal(await same.stdout(), "1\n2\n3\n");
  },
  async kill() {
    for (const [signal, code] of [["SIGKILL", 137], [undefined, 143]]) {
      const cmd = await sb.runCommand({ cmd: "sleep", args: ["600"], detached: true });
      await cmd.kill(signal);
      assert.equal((await cmd.wait()).exitCode, code);
    }
  },
  async timeout() {
    assert.equal((await sb.runCommand({ cmd: "sleep", args: ["600"], timeoutMs: 150 })).exitCode, 137);
  },
  async files() {
    await sb.mkDir("probe");
    await sb.writeFiles([
      { path: "probe/hello.txt", content: Buffer.from("hello") },
      { path: "/tmp/abs.bin", content: Buffer.from([0, 255, 10]) },
      { path: "probe/run.sh", content: Buffer.from("#!/bin/sh\necho ran\n"), mode: 0o755 },
    ]);
    assert.equal(String(await sb.readFileToBuffer({ path: "probe/hello.txt" })), "hello");
    assert.deepEqual([...(await sb.readFileToBuffer({ path: "/tmp/abs.bin" }))], [0, 255, 10]);
    assert.equal(await sb.readFileToBuffer({ path: "no-such" }), null);
    let streamed = "";
    for await (const chunk of await sb.readFile({ path: "hello.txt", cwd: sb.cwd ? sb.cwd + "/probe" : "/vercel/sandbox/probe" })) streamed += chunk;
    assert.equal(streamed, "hello");
    assert.equal(await (await sb.runCommand("probe/run.sh")).stdout(), "ran\n");
    await fails(400, "file_error", sb.mkDir("probe"));
    await fails(400, "file_error", sb.mkDir("no/parent"));
  },
  async fs() {
    const { fs } = sb;
    await fs.mkdir("fs/deep", { recursive: true });
    await fs.writeFile("fs/a.txt", "one");
    await fs.appendFile("fs/a.txt", " two");
    assert.equal(await fs.readFile("fs/a.txt", "utf8"), "one two");
    assert.deepEqual((await fs.readdir("fs")).sort(), ["a.txt", "deep"]);
    const entries = await fs.readdir("fs", { withFileTypes: true });
    assert.deepEqual(entries.map((e) => [e.name, e.isDirectory()]).sort(), [["a.txt", false], ["deep", true]]);
    const stat = await fs.stat("fs/a.txt");
    assert.equal(stat.size, 7);
    assert.ok(stat.isFile());
    await fs.rename("fs/a.txt", "fs/b.txt");
    await fs.copyFile("fs/b.txt", "fs/c.txt");
    await fs.symlink("b.txt", "fs/l");
    assert.equal(await fs.readlink("fs/l"), "b.txt");
    assert.ok((await fs.lstat("fs/l")).isSymbolicLink());
    await fs.chmod("fs/c.txt", 0o600);
    assert.equal((await fs.stat("fs/c.txt")).mode & 0o777, 0o600);
    await fs.truncate("fs/c.txt", 3);
    assert.equal(await fs.readFile("fs/c.txt", "utf8"), "one");
    assert.equal(await fs.exists("fs/none"), false);
    await assert.rejects(fs.readFile("fs/none"), { code: "ENOENT" });
    await assert.rejects(fs.stat("fs/none"), { code: "ENOENT" });
    assert.ok((await fs.mkdtemp("/tmp/t-")).startsWith("/tmp/t-"));
    await fs.rm("fs", { recursive: true });
    assert.equal(await fs.exists("fs"), false);
  },
  async more() {
    const { fs } = sb;
    await fs.writeFile("more.txt", "one");
    await fs.mkdir("empty");
    await fs.rmdir("empty");
    await fs.access("more.txt");
    await assert.rejects(fs.access("none"), { code: "ENOENT" });
    const { uid, gid } = await fs.stat("more.txt");
    await fs.chown("more.txt", uid, gid);
    assert.equal(await fs.realpath("more.txt"), (sb.cwd ?? "/vercel/sandbox") + "/more.txt");
    assert.equal(readFileSync(await sb.downloadFile({ path: "more.txt" }, { path: "here.txt" }), "utf8"), "one");
    assert.equal(await sb.downloadFile({ path: "none" }, { path: "none" }), null);
    await fs.unlink("more.txt");
    assert.equal(await fs.exists("more.txt"), false);
    const done = await sb.runCommand("sh", ["-c", "echo out; echo err >&2"]);
    assert.deepEqual((await done.output()).trim().split("\n").sort(), ["err", "out"]);
    assert.equal((await done.wait()).exitCode, 0);
    const { url, token } = await sb.openInteractive();
    assert.ok(url.startsWith("ws://") && token);
    if (three) assert.deepEqual(await sb.getDefaultUser(), { username: "ubuntu", group: "ubuntu" });
  },
  async users() {
    if (!three) return;
    const alice = await sb.createUser("alice");
    const bob = await sb.createUser("bob");
    await assert.rejects(sb.createUser("alice"), { name: "SandboxUserAlreadyExistsError" });
    const who = await alice.runCommand({ cmd: "sh", args: ["-c", "id -un; id -gn; pwd; echo $OWN"], env: { OWN: "a b" } });
    assert.equal(await who.stdout(), "alice\nalice\n/home/alice\na b\n");
    assert.equal(await (await alice.runCommand("id", ["-u"])).stdout() === "0\n", false);
    assert.equal(await (await alice.runCommand({ cmd: "id", args: ["-u"], sudo: true })).stdout(), "0\n");
    assert.equal(await (await sb.asUser("root").runCommand("pwd")).stdout(), "/root\n");
    assert.equal((await bob.runCommand({ cmd: "false", cwd: "/tmp" })).exitCode, 1);
    assert.notEqual((await sb.asUser("nobody-here").runCommand("true")).exitCode, 0);
    await alice.writeFiles([{ path: "deep/er/own.txt", content: Buffer.from([104, 105, 255]) }]);
    assert.deepEqual([...(await alice.readFileToBuffer({ path: "deep/er/own.txt" }))], [104, 105, 255]);
    let streamed = 0;
    for await (const chunk of await alice.readFile({ path: "own.txt", cwd: "/home/alice/deep/er" })) streamed += chunk.length;
    assert.equal(streamed, 3);
    assert.equal(await alice.readFile({ path: "none" }), null);
    assert.equal(readFileSync(await alice.downloadFile({ path: "deep/er/own.txt" }, { path: "own.txt" })).length, 3);
    await alice.mkDir("made");
    assert.equal((await alice.runCommand("test", ["-d", "/home/alice/made"])).exitCode, 0);
    const { groupname, sharedDir } = await sb.createGroup("devs");
    assert.deepEqual([groupname, sharedDir], ["devs", "/shared/devs"]);
    await sb.addUserToGroup("alice", "devs");
    await bob.addToGroup("devs");
    const groups = async (n) => (await (await sb.runCommand("id", ["-nG", n])).stdout()).trim().split(" ");
    assert.deepEqual([await groups("alice"), await groups("bob")], [["alice", "devs"], ["bob", "devs"]]);
    await alice.runCommand("sh", ["-c", "echo shared > /shared/devs/f"]);
    assert.equal(await (await bob.runCommand("cat", ["/shared/devs/f"])).stdout(), "shared\n");
    await sb.removeUserFromGroup("alice", "devs");
    await bob.removeFromGroup("devs");
    assert.deepEqual([await groups("alice"), await groups("bob")], [["alice"], ["bob"]]);
  },
  async getters() {
    const all = (o, C) => Object.fromEntries(Object.entries(Object.getOwnPropertyDescriptors(C.prototype)).filter(([, d]) => d.get).map(([k]) => [k, o[k]]));
    const shown = all(await Sandbox.get({ ...credentials, name: "sdk-a" }), Sandbox);
    for (const k of ["totalEgressBytes", "totalIngressBytes", "totalActiveCpuDurationMs", "totalDurationMs"]) assert.equal(shown[k], 0, k);
    assert.ok(shown.createdAt instanceof Date && shown.updatedAt instanceof Date && shown.statusUpdatedAt instanceof Date);
    if (three) assert.ok(shown.expiresAt > new Date());
    assert.equal(shown.vcpus, 2);
    assert.equal(shown.memory, 4096);
    const ses = all(sb.currentSession(), sdk.Session);
    assert.equal(ses.cwd, three ? "/vercel" : "/vercel/sandbox");
    assert.ok(ses.startedAt instanceof Date && ses.stoppedAt === undefined);
  },
  async ports() {
    const url = new URL(sb.domain(3000));
    assert.ok(url.host.endsWith(".vercel.run"));
    assert.throws(() => sb.domain(4000));
    const serve = `import http.server,os
os.chdir("/tmp"); open("port.txt","w").write("served")
http.server.HTTPServer(("0.0.0.0",3000),http.server.SimpleHTTPRequestHandler).serve_forever()`;
    if ((await sb.runCommand("sh", ["-c", "command -v python3"])).exitCode !== 0) return;
    await sb.runCommand({ cmd: "python3", args: ["-c", serve], detached: true });
    await sb.runCommand("sh", ["-c", "while ! curl -s http://127.0.0.1:3000/ >/dev/null; do sleep 0.02; done"]);
    const body = await new Promise((resolve, reject) => {
      http.get(base + "/port.txt", { headers: { host: url.host } }, (res) => {
        let text = "";
        res.on("data", (c) => (text += c)).on("end", () => resolve(text));
      }).on("error", reject);
    });
    assert.equal(body, "served");
  },
  async extend() {
    await sb.extendTimeout(60_000);
    assert.equal(sb.currentSession().timeout, 180_000);
  },
  async network() {
    const reach = async () => (await sb.runCommand("curl", ["-sk", "--max-time", "10", `https://origin.test:${originPort}/`])).exitCode === 0;
    assert.equal(await reach(), false);
    await sb.updateNetworkPolicy({ allow: ["origin.test"] });
    assert.equal(await reach(), true);
    assert.deepEqual(sb.currentSession().networkPolicy, { allow: ["origin.test"] });
    await sb.updateNetworkPolicy("deny-all");
    assert.equal(await reach(), false);
    await sb.updateNetworkPolicy({
      allow: { "origin.test": [{ transform: [{ headers: { authorization: "Bearer secret" } }] }], "*.example.com": [] },
      subnets: { allow: ["10.0.0.0/8"], deny: ["169.254.0.0/16"] },
    });
    assert.deepEqual(sb.currentSession().networkPolicy, {
      allow: { "*.example.com": [], "origin.test": [{ transform: [{ headers: { authorization: "<redacted>" } }] }] },
      subnets: { allow: ["10.0.0.0/8"], deny: ["169.254.0.0/16"] },
    });
    await sb.updateNetworkPolicy("allow-all");
    assert.equal(await reach(), true);
  },
  async errors() {
    await fails(400, "executable_not_found", sb.runCommand("no-such-program"));
    await fails(404, "not_found", Sandbox.get({ ...credentials, name: "no-such" }));
    await fails(409, "conflict", Sandbox.create({ ...credentials, name: "sdk-a" }));
    await fails(400, "bad_request", Sandbox.create({ ...credentials, name: "not a name" }));
    await fault({ path: "/v2/sandboxes/sessions/*/cmd", status: 429, retryAfter: "1" });
    assert.equal((await sb.runCommand("true")).exitCode, 0);
    await fault({ path: "/v2/sandboxes/sessions/*/cmd", status: 502, body: "<html>Bad Gateway</html>" });
    assert.equal((await sb.runCommand("true")).exitCode, 0);
    await fault({ path: "/v2/sandboxes/sessions/*/cmd", reset: "before" });
    assert.equal((await sb.runCommand("true")).exitCode, 0);
    await fault({ path: "/v2/sandboxes/sessions/*/cmd", status: 402 });
    await fails(402, "payment_required", sb.runCommand("true"));
    await fault({ path: "/v2/sandboxes/sessions/*/cmd", then: "end", lines: 1 });
    await assert.rejects(sb.runCommand("true"), (e) => e instanceof StreamError && e.code === "stream_ended_early");
    if (three) {
      await fault({ path: "/v2/sandboxes/sessions/*/cmd", then: "error", lines: 1, code: "sandbox_stream_closed", message: "closed" });
      await assert.rejects(sb.runCommand("true"), (e) => e instanceof StreamError && e.code === "sandbox_stream_closed");
    }
  },
  async resume() {
    await sb.writeFiles([{ path: "kept.txt", content: Buffer.from("kept") }]);
    const before = sb.currentSession().sessionId;
    await sb.stop();
    assert.equal(sb.status, "stopped");
    assert.equal(String(await sb.readFileToBuffer({ path: "kept.txt" })), "kept");
    assert.notEqual(sb.currentSession().sessionId, before);
    if (three) assert.equal(await (await sb.asUser("alice").runCommand("whoami")).stdout(), "alice\n");
    const again = await Sandbox.get({ ...credentials, name: "sdk-a" });
    assert.equal(again.currentSession().sessionId, sb.currentSession().sessionId);
    const { sessions } = await sb.listSessions();
    assert.equal(sessions.length, 2);
  },
  async snapshot() {
    const snapshot = await sb.snapshot();
    snapshotId = snapshot.snapshotId;
    assert.equal(snapshot.status, "created");
    assert.ok(snapshot.sizeBytes > 0 && snapshot.createdAt instanceof Date && snapshot.updatedAt instanceof Date && snapshot.expiresAt > new Date());
    assert.ok(snapshot.sourceSessionId && (!three || snapshot.regions[0] === "iad1"));
    assert.ok((await sb.listSnapshots()).snapshots.some((s) => s.id === snapshotId));
    assert.ok((await Snapshot.tree({ ...credentials, snapshotId })).anchor);
    const copy = await Sandbox.create({ ...credentials, name: "sdk-b", source: { type: "snapshot", snapshotId }, persistent: false });
    assert.equal(String(await copy.readFileToBuffer({ path: "kept.txt" })), "kept");
    const list = await Snapshot.list(credentials);
    assert.ok(list.snapshots.some((s) => s.id === snapshotId));
    await copy.stop();
    assert.equal((await copy.runCommand("true")).exitCode, 0); // 410, then a resume from what it was made from
    await copy.delete();
    await (await Snapshot.get({ ...credentials, snapshotId })).delete();
    await fails(410, "snapshot_not_found", Sandbox.create({ ...credentials, name: "sdk-c", source: { type: "snapshot", snapshotId } }));
  },
  async getOrCreate() {
    const make = (onCreate) => Sandbox.getOrCreate({ ...credentials, name: "sdk-f", resume: true, onCreate });
    let made = 0;
    const count = async () => void made++;
    const first = await make(count);
    const same = await make(count);
    assert.deepEqual([made, same.currentSession().sessionId], [1, first.currentSession().sessionId]);
    const { snapshot } = await same.stop();
    await (await Snapshot.get({ ...credentials, snapshotId: snapshot.id })).delete();
    await (await make(count)).delete(); // begun anew
    assert.equal(made, 2);
    const other = await Sandbox.create({ ...credentials, name: "sdk-g", persistent: false });
    await other.stop();
    await fails(400, "snapshot_not_found", other.runCommand("true")); // 410, then a resume without a snapshot
    await other.delete();
  },
  async update() {
    const other = await Sandbox.create({ ...credentials, name: "sdk-d", persistent: false, timeout: 60_000 });
    await other.update({ timeout: 90_000, tags: { kind: "other" }, resources: { vcpus: 4 }, networkPolicy: "deny-all", ports: [5000] });
    if (three) assert.equal(other.currentSession().timeout, 90_000);
    assert.equal(other.currentSession().networkPolicy, "deny-all");
    assert.deepEqual(other.tags, { kind: "other" });
    assert.equal(other.vcpus, 4);
    const fork = await Sandbox.fork({ ...credentials, sourceSandbox: "sdk-d", name: "sdk-e" });
    if (three) assert.equal(fork.timeout, 90_000);
    await fork.delete();
    await other.delete();
  },
  async list() {
    for (const n of ["sdk-1", "sdk-2", "sdk-3"]) await Sandbox.create({ ...credentials, name: n, persistent: false });
    const list = await Sandbox.list({ ...credentials, limit: 2, sortBy: "name", sortOrder: "asc", namePrefix: "sdk-" });
    assert.equal(list.sandboxes.length, 2);
    assert.deepEqual((await list.toArray()).map((s) => s.name), ["sdk-1", "sdk-2", "sdk-3", "sdk-a"]);
    const tagged = await Sandbox.list({ ...credentials, tags: { kind: "test" } });
    assert.deepEqual(tagged.sandboxes.map((s) => s.name), ["sdk-a"]);
  },
  async drives() {
    if (!three) return;
    const { Drive } = sdk;
    const drive = await Drive.getOrCreate({ ...credentials, name: "sdk-drive", maxSize: 1e9 });
    const again = await Drive.getOrCreate({ ...credentials, name: "sdk-drive" });
    assert.deepEqual([again.driveId, again.maxSize, again.region, again.projectId], [drive.driveId, 1e9, "iad1", "prj_x"]);
    assert.ok(drive.createdAt instanceof Date && drive.updatedAt instanceof Date);
    const writer = await Sandbox.create({ ...credentials, name: "sdk-w", persistent: false, mounts: { "/data": drive } });
    assert.deepEqual(writer.mounts, { "/data": { drive: "sdk-drive", mode: "read-write" } });
    assert.equal((await writer.runCommand("sh", ["-c", "echo kept > /data/f"])).exitCode, 0);
    await fails(409, "conflict", Sandbox.create({ ...credentials, name: "sdk-x", mounts: { "/data": drive } }));
    await fails(409, "conflict", drive.delete());
    const reader = await Sandbox.create({ ...credentials, name: "sdk-r", persistent: false, mounts: { "/mnt/data": drive.snapshot() } });
    const shown = await reader.runCommand("sh", ["-c", "cat /mnt/data/f; touch /mnt/data/g"]);
    assert.deepEqual([await shown.stdout(), shown.exitCode === 0], ["kept\n", false]);
    const list = await Drive.list({ ...credentials, sortBy: "name", namePrefix: "sdk-" });
    assert.deepEqual(list.drives.map((d) => [d.name, d.currentSandboxName, d.currentSessionId]), [["sdk-drive", "sdk-w", writer.currentSession().sessionId]]);
    for (const one of [writer, reader]) await one.delete();
    await drive.delete();
    assert.equal((await Drive.list(credentials)).drives.length, 0);
  },
  async stop() {
    for (const n of ["sdk-1", "sdk-2", "sdk-3", "sdk-a"]) {
      const one = await Sandbox.get({ ...credentials, name: n });
      await one.stop();
      await one.delete();
      await fails(404, "not_found", Sandbox.get({ ...credentials, name: n }));
    }
  },
};

for (const [label, run] of Object.entries(steps)) {
  step = label;
  const begun = Date.now();
  await run();
  console.log(`ok ${label} ${Date.now() - begun} ms`);
}
console.log(`driven ${driven.size} of ${offered.size}; not: ${[...offered].filter((m) => !driven.has(m)).sort().join(" ")}`);
