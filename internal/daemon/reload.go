package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"egressd/event"
	"egressd/internal/daemon/tokens"
	"egressd/internal/daemon/watch"
	"egressd/policy"
	"egressd/proxy"
)

// rejections are the files whose last load failed, by what they are for. Safe for
// concurrent use.
type rejections struct {
	mu  sync.Mutex
	why map[string]error
}

// set notes how the load of what ended, and reports whether the one before had
// failed.
func (r *rejections) set(what string, err error) (failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, failed = r.why[what]
	if err == nil {
		delete(r.why, what)
		return failed
	}
	if r.why == nil {
		r.why = make(map[string]error)
	}
	r.why[what] = err
	return failed
}

func (r *rejections) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.why)
}

// details reports in one line each what is in force and what was rejected.
func (d *daemon) details() []string {
	var out []string
	for _, n := range d.policies {
		out = append(out, "policy "+n.source.Name+" "+n.current.Load().Digest())
	}
	for _, n := range d.policies {
		if why := n.volume.exhausted(); why != "" {
			out = append(out, "policy "+n.source.Name+" is denied everything, others are not: "+why)
		}
	}
	return append(out, d.rejected.lines()...)
}

// lines reports in one line each what was rejected.
func (r *rejections) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, what := range slices.Sorted(maps.Keys(r.why)) {
		out = append(out, what+" was rejected, the one before is in force: "+strings.ReplaceAll(r.why[what].Error(), "\n", "; "))
	}
	return out
}

// loadFirst loads every policy and the tokens at the start, where an error ends
// the daemon.
func (d *daemon) loadFirst() error {
	read := make([]candidate, len(d.policies))
	var errs []error
	for i, n := range d.policies {
		var err error
		if read[i], err = d.read(n); err != nil {
			errs = append(errs, err)
		}
	}
	set, err := d.readTokens()
	if err := errors.Join(append(errs, err)...); err != nil {
		return &ConfigError{err}
	}
	if d.c.Tokens != "" {
		d.metrics.TokensLoaded(len(set.Refs()), nil)
	}
	d.routes.set(set)
	for i, n := range d.policies {
		if err := d.enforce(n, read[i], true); err != nil {
			return err
		}
	}
	return d.trust.write()
}

// readTokens reads the tokens file; nil when there is none.
func (d *daemon) readTokens() (*tokens.Set, error) {
	if d.c.Tokens == "" {
		return nil, nil
	}
	set, err := tokens.Load(d.c.Tokens, d.c.ReadFile)
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread):
		return nil, unreadable("--tokens "+d.c.Tokens, err)
	case err != nil:
		return nil, fmt.Errorf("--tokens: %w", err)
	}
	for _, ref := range set.Refs() {
		if d.find(ref.Name) == nil {
			return nil, fmt.Errorf("%s: there is no policy %q: add --policy %s=FILE, or take the token away", ref.Pos, ref.Name, ref.Name)
		}
	}
	return set, nil
}

// reloads loads everything again on Config.Reload or when a file changes, one load
// at a time, until ctx ends.
func (d *daemon) reloads(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	watched := d.files()
	stop := d.watch(ctx, watched, changed)
	defer func() { stop() }()
	memory := newMemory()
	memory.fit(d.lists())
	idle := time.NewTicker(tokenIdle / 10)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-idle.C:
			d.routes.collect(now)
			memory.fit(d.lists())
		case <-changed:
			d.log.Debug("checking whether a file changed")
			d.reload(false)
			memory.fit(d.lists())
		case <-d.c.Reload:
			d.log.Info("SIGHUP: reading everything again")
			d.flush() // into the file that they belong to
			if err := d.record.reopen(); err != nil {
				d.log.Error("the events file was not opened again", "err", err)
			}
			d.reload(true)
			memory.fit(d.lists())
		}
		if files := d.files(); !slices.Equal(files, watched) { // a policy names other lists than before
			stop()
			watched, stop = files, d.watch(ctx, files, changed)
		}
	}
}

// watch says into changed when one of files may have changed, until stop is called,
// which returns after its goroutine has exited, or ctx ends.
func (d *daemon) watch(ctx context.Context, files []string, changed chan<- struct{}) (stop func()) {
	if len(files) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		w := watch.Watcher{Paths: files, Log: d.log, Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // one is due anyway
			}
		}}
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("policy files are not watched any more: after a change send SIGHUP", "err", err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// files lists what is watched: policies, the lists they name, and the tokens.
func (d *daemon) files() []string {
	var out []string
	for _, n := range d.policies {
		out = append(out, n.inputs.files...)
	}
	if d.c.Tokens != "" {
		out = append(out, d.c.Tokens)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// reload loads the tokens and each policy again. What cannot be loaded stays as it
// is and is reported. asked: a person asked for it, and not only a file was
// touched; then what is unchanged counts as loaded, too.
func (d *daemon) reload(asked bool) {
	notify := d.state.Load() == stateServing // after Stopping, nothing else is reported
	if notify {
		d.notify(d.c.Notifier.Reloading())
	}
	d.reloadTokens(asked)
	for _, n := range d.policies {
		if !asked && n.inputs.unchanged() {
			continue
		}
		c, err := d.read(n)
		if err == nil {
			err = d.enforce(n, c, asked)
		}
		if err != nil {
			d.reject(n, err)
		}
	}
	if notify {
		d.notify(d.c.Notifier.Ready(d.status()))
	}
}

// reloadTokens loads the tokens again. It logs that they are in force if report is
// set, if their number has changed, or if the file was rejected before.
func (d *daemon) reloadTokens(report bool) {
	if d.c.Tokens == "" {
		return
	}
	set, err := d.readTokens()
	report = d.rejected.set("the tokens file", err) || report
	d.metrics.TokensLoaded(len(set.Refs()), err)
	if err != nil {
		d.log.Error("the tokens were rejected; those before stay in force", "err", err)
		return
	}
	report = report || len(set.Refs()) != d.routes.known()
	if closed := d.routes.set(set); closed > 0 {
		d.log.Info("tokens were taken away; their flows are closed", "tokens", closed)
	}
	if report {
		d.log.Info("the tokens are in force", "tokens", len(set.Refs()))
	}
}

// reject reports that a policy could not be loaded.
func (d *daemon) reject(n *policyGate, err error) {
	name := n.source.Name
	d.rejected.set("policy "+name, err)
	d.metrics.PolicyRejected(name)
	d.log.Error("the policy was rejected; the one before stays in force", "policy", name, "err", err)
	d.emit(event.Event{Policy: n.current.Load().Digest(), Body: &event.PolicyRejected{Name: name, Error: err.Error()}})
}

// enforce puts c in force as n's policy and judges open flows again. After an error
// nothing has changed. report: it counts as a load even if it is the policy that
// was in force before.
func (d *daemon) enforce(n *policyGate, c candidate, report bool) error {
	if _, err := d.trust.authority.Extend(c.policy.Intercepted()); err != nil {
		return err
	}
	old := n.current.Load()
	if old != nil { // at the start it is written once for all policies
		if err := d.trust.write(); err != nil {
			return err
		}
	}
	n.resolver.SetUpstreams(c.upstreams)
	for _, u := range c.upstreams {
		d.asked.of(u)
	}
	n.current.Store(c.policy)
	n.inputs.sums = c.sums
	closed := n.gate.Rejudge()
	for _, g := range d.routes.gates(n) {
		closed += g.Rejudge()
	}
	closed += d.renarrow(n)
	report = d.rejected.set("policy "+n.source.Name, nil) || report
	if report || old.Digest() != c.policy.Digest() {
		d.metrics.PolicyLoaded(n.source.Name, c.policy, time.Now())
	}
	if old != nil && old.Digest() == c.policy.Digest() && report {
		d.log.Info("the policy is in force, unchanged", "policy", n.source.Name, "digest", c.policy.Digest())
	}
	d.reportChange(n.source.Name, old, c.policy, closed)
	return nil
}

// reportChange logs and records what changed, if anything did.
func (d *daemon) reportChange(name string, old, next *policy.Policy, closed int) {
	diff := next.Diff(old)
	added, removed := len(diff.Added)+diff.MoreAdded, len(diff.Removed)+diff.MoreRemoved
	log := d.log.With("policy", name, "digest", next.Digest())
	if old != nil && old.Digest() == next.Digest() && added+removed == 0 {
		log.Debug("the policy is unchanged")
		return
	}
	d.emit(event.Event{Policy: next.Digest(), Body: &event.PolicyLoaded{
		Name: name, Added: int64(added), Removed: int64(removed),
	}})
	if old != nil {
		for _, line := range first(diff.Removed, diff.MoreRemoved) {
			log.Info("policy change", "removed", line)
		}
		for _, line := range first(diff.Added, diff.MoreAdded) {
			log.Info("policy change", "added", line)
		}
	}
	log.Info("the policy is in force", "added", added, "removed", removed, "flows_closed", closed)
	d.warn(log, old, next)
}

// warn logs what a policy needs that this machine or configuration lacks. About
// connections it warns only if p allows more of them than old did.
func (d *daemon) warn(log *slog.Logger, old, p *policy.Policy) {
	connections := connectionsOf(p)
	if files := openFiles(); files > 0 && uint64(connections) > files/2 && (old == nil || connections > connectionsOf(old)) {
		log.Warn("every flow takes two file descriptors, and there are not enough for the limit on connections: raise it (LimitNOFILE=, ulimits, ulimit -n) or lower limits.connections",
			"descriptors", files, "connections", connections)
	}
	if room := proxy.Room(d.c.Memory).Memory; room > 0 && p.Limits().Connections > room && (old == nil || connections > connectionsOf(old)) {
		log.Warn("limits.connections is more than the limit on memory leaves room for: raise that, or lower it", "connections", connections, "room", room)
	}
	if hosts := p.Intercepted(); len(hosts) > 0 && d.c.CABundle == "" {
		log.Warn("the policy opens TLS, and clients will refuse that until they trust egressd: give --ca-bundle FILE and have clients use that file", "hosts", hosts)
	}
	var wide []string
	for _, w := range p.Warnings() {
		wide = append(wide, w.Error())
	}
	for _, w := range first(wide, 0) {
		log.Warn("a rule is wider than it looks", "warning", w)
	}
	allow, deny := p.Lists()
	for _, l := range slices.Concat(allow, deny) {
		if n := l.Skipped(); n > 0 {
			log.Warn("a list holds what is no rule; it was left out, as unknown: skip says", "list", l.Path, "left_out", n, "rules", l.Rules())
		}
	}
	if p.Audit() {
		log.Warn("the policy audits: nothing is denied that a rule could allow")
	}
}

// connectionsOf reports how many connections p allows at a time.
func connectionsOf(p *policy.Policy) int {
	if n := p.Limits().Connections; n > 0 {
		return n
	}
	return policy.DefaultLimits().Connections
}

// maxLogged is how many lines of a difference are logged, of either side.
const maxLogged = 50

// first reports what is logged of lines and of more that nobody has listed.
func first(lines []string, more int) []string {
	shown := min(len(lines), maxLogged)
	if more += len(lines) - shown; more == 0 {
		return lines
	}
	return append(slices.Clone(lines[:shown]), fmt.Sprintf("and %d more", more))
}
