package fake

import "runtime"

// json is what the API shows of b, but for create and fork: see begun. Callers
// hold s.mu, here and below.
func (b *box) json() *sandboxJSON {
	j := b.begun()
	j.TotalEgressBytes, j.TotalIngressBytes = ptr(b.egress), ptr(b.ingress)
	j.TotalActiveCPUDurationMs, j.TotalDurationMs = ptr(b.cpuMs), ptr(b.durationMs)
	if ses := b.current; ses.status == statusRunning {
		j.ExpiresAt = ses.started + ses.timeout
	}
	return j
}

// begun is what create and fork show of b: no totals, and no end.
func (b *box) begun() *sandboxJSON {
	ses := b.current
	return &sandboxJSON{
		Name: b.name, CurrentSessionID: ses.id, CurrentSnapshotID: b.currentSnapshot, Status: ses.status, StatusUpdatedAt: b.statusAt,
		Persistent: b.persistent, Region: b.region, FailoverRegions: b.failover, Architecture: runtime.GOARCH, VCPUs: b.vcpus,
		Memory: b.vcpus * memoryPerVCPU, Runtime: ses.runtime, Image: pinned(b.image), Timeout: b.timeout, NetworkPolicy: b.policy.JSON(),
		NetworkID: b.networkID, Cwd: ses.cwd, Tags: b.tags, Mounts: b.mounts, SnapshotExpiration: b.snapshotExpiration,
		KeepLastSnapshots: b.keep, CreatedAt: b.created, UpdatedAt: b.updated,
	}
}

// json is what the API shows of ses.
func (ses *session) json() *sessionJSON {
	j := &sessionJSON{
		ID: ses.id, Status: ses.status, Memory: ses.vcpus * memoryPerVCPU, VCPUs: ses.vcpus, Region: ses.region, Runtime: ses.runtime,
		Architecture: runtime.GOARCH, Timeout: ses.timeout, RequestedAt: ses.requested, StartedAt: ses.started,
		RequestedStopAt: ses.stopAsked, StoppedAt: ses.stopped, SnapshottedAt: ses.snapped, CreatedAt: ses.requested,
		UpdatedAt: ses.updated, Cwd: ses.cwd, InteractivePort: interactivePort, SourceSnapshotID: ses.source,
		SourceSandboxName: ses.box.name, ProjectID: ses.box.project, NetworkPolicy: ses.policy.JSON(),
	}
	if ses.status == statusStopped {
		j.Duration, j.ActiveCPUDurationMs, j.NetworkTransfer = ptr(ses.stopped-ses.started), ptr(ses.cpuMs), ses.transfer
	}
	return j
}

// interactivePort is what the hosted service shows; nothing listens there.
const interactivePort = 26661

func (ses *session) routesJSON() *[]routeJSON {
	out := []routeJSON{}
	for _, r := range ses.routes {
		out = append(out, routeJSON{URL: "http://" + r.ln.Addr().String(), Subdomain: r.subdomain, Port: r.port})
	}
	return &out
}
