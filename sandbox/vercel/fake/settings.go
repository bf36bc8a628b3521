package fake

import (
	"encoding/json"
	"slices"
	"strings"

	"egressd/sandbox/vercel/fake/internal/drives"
	"egressd/sandbox/vercel/fake/internal/firewall"
	"egressd/sandbox/vercel/fake/internal/reply"
)

// settings are what later sessions of a sandbox are made of.
type settings struct {
	persistent         bool
	ports              []int
	timeout            int64
	vcpus              int
	runtime, image     string
	legacy             bool             // made by the old create: another home and working directory
	policy             *firewall.Policy // nil: none was given, so everything is allowed
	networkID          string
	env, tags          map[string]string
	snapshotExpiration *int64
	keep               *keepLast
	region             string
	failover           []string
	mounts             drives.Mounts
}

func defaultSettings() settings {
	return settings{
		persistent: true, timeout: defaultTimeoutMs, vcpus: defaultVCPUs,
		region: defaultRegion, failover: []string{},
	}
}

// merge applies b to s. The error says what is invalid in b.
func (s *settings) merge(b *createBody) error {
	for _, step := range []func(*createBody) error{s.mergeMachine, s.mergeRegions, s.mergeMaps, s.mergeSnapshots, s.mergeNetwork} {
		if err := step(b); err != nil {
			return err
		}
	}
	if b.Persistent != nil {
		s.persistent = *b.Persistent
	}
	if b.Mounts == nil {
		return nil
	}
	var err error
	s.mounts, err = drives.ParseMounts(b.Mounts)
	return err
}

func (s *settings) mergeMachine(b *createBody) error {
	if b.Timeout != nil {
		if *b.Timeout < minTimeoutMs || *b.Timeout > maxTimeoutMs {
			return reply.BadRequest("Invalid request: `timeout` should be >= %d and <= %d.", minTimeoutMs, maxTimeoutMs)
		}
		s.timeout = *b.Timeout
	}
	if b.Resources != nil && b.Resources.VCPUs != nil {
		n := *b.Resources.VCPUs
		if n < 1 || n > maxVCPUs || n > 1 && n%2 != 0 {
			return reply.BadRequest("Invalid request: `resources.vcpus` should be 1 or an even number up to %d.", maxVCPUs)
		}
		s.vcpus = n
	}
	if b.Resources != nil && b.Resources.Memory != nil && *b.Resources.Memory != s.vcpus*memoryPerVCPU {
		return reply.BadRequest("Invalid request: `resources.memory` should be %d MB for each vCPU.", memoryPerVCPU)
	}
	if b.Ports != nil {
		if err := checkPorts(*b.Ports); err != nil {
			return err
		}
		s.ports = append([]int{}, *b.Ports...)
	}
	return nil
}

func (s *settings) mergeRegions(b *createBody) error {
	if b.Region != nil {
		s.region = *b.Region
	}
	if b.FailoverRegions != nil {
		s.failover = append([]string{}, *b.FailoverRegions...)
	}
	for i, r := range append([]string{s.region}, s.failover...) {
		switch {
		case !slices.Contains(regions, r):
			return reply.BadRequest("Invalid request: region %q does not exist.", r)
		case i > 0 && r == s.region:
			return reply.BadRequest("Invalid request: `failoverRegions` should NOT contain the sandbox's own region.")
		case i > 0 && slices.Contains(s.failover[:i-1], r):
			return reply.BadRequest("Invalid request: `failoverRegions` should NOT have duplicate items.")
		}
	}
	return nil
}

func checkPorts(ports []int) error {
	if len(ports) > maxPorts {
		return reply.BadRequest("Invalid request: `ports` should NOT have more than %d items.", maxPorts)
	}
	for i, p := range ports {
		if p < minPort || p > maxPort {
			return reply.BadRequest("Invalid request: `ports[%d]` should be >= %d and <= %d.", i, minPort, maxPort)
		}
		if slices.Contains(ports[:i], p) {
			return reply.BadRequest("Invalid request: `ports` should NOT have duplicate items.")
		}
	}
	return nil
}

func (s *settings) mergeMaps(b *createBody) error {
	if b.Env != nil {
		if err := checkEnv(*b.Env); err != nil {
			return err
		}
		s.env = *b.Env
	}
	if b.Tags == nil {
		return nil
	}
	if len(*b.Tags) > maxTags {
		return reply.BadRequest("Invalid request: `tags` should NOT have more than %d properties.", maxTags)
	}
	for k, v := range *b.Tags {
		if k == "" || len(k) > maxTagBytes || len(v) > maxTagBytes {
			return reply.BadRequest("Invalid request: `tags.%s` should NOT be longer than %d characters.", k, maxTagBytes)
		}
	}
	s.tags = *b.Tags
	return nil
}

func checkEnv(env map[string]string) error {
	total := 0
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return reply.BadRequest("Invalid request: `env` has an invalid variable.")
		}
		total += len(k) + len(v)
	}
	if len(env) > maxEnv || total > maxEnvBytes {
		return reply.BadRequest("Invalid request: `env` is too large.")
	}
	return nil
}

func (s *settings) mergeSnapshots(b *createBody) error {
	if e := b.SnapshotExpiration; e != nil {
		if err := checkExpiration("snapshotExpiration", *e); err != nil {
			return err
		}
		s.snapshotExpiration = e
	}
	if b.KeepLastSnapshots == nil {
		return nil
	}
	if string(b.KeepLastSnapshots) == "null" {
		s.keep = nil
		return nil
	}
	var k keepLast
	if err := reply.DecodeBytes(b.KeepLastSnapshots, &k); err != nil {
		return err
	}
	if k.Count < 1 || k.Count > maxKeepSnapshots {
		return reply.BadRequest("Invalid request: `keepLastSnapshots.count` should be >= 1 and <= %d.", maxKeepSnapshots)
	}
	if k.Expiration != nil {
		if err := checkExpiration("keepLastSnapshots.expiration", *k.Expiration); err != nil {
			return err
		}
	}
	s.keep = &k
	return nil
}

func checkExpiration(field string, ms int64) error {
	if ms != 0 && ms < minExpirationMs {
		return reply.BadRequest("Invalid request: `%s` should be 0 or >= %d.", field, minExpirationMs)
	}
	return nil
}

func (s *settings) mergeNetwork(b *createBody) error {
	if b.NetworkPolicy != nil {
		p, err := firewall.Parse(b.NetworkPolicy)
		if err != nil {
			return err
		}
		s.policy = p
	}
	if b.NetworkID == nil {
		return nil
	}
	s.networkID = ""
	if string(b.NetworkID) == "null" {
		return nil
	}
	if err := json.Unmarshal(b.NetworkID, &s.networkID); err != nil {
		return reply.BadRequest("Invalid request: `networkId` should be string.")
	}
	return nil
}

// mergeImage determines what the machine is made from.
func (s *settings) mergeImage(b *createBody, v3 bool) error {
	snapshot := b.Source != nil && b.Source.Type == "snapshot"
	switch {
	case b.Runtime != nil && b.Image != nil:
		return reply.BadRequest("Invalid request: `runtime` and `image` cannot be used together.")
	case snapshot && (b.Runtime != nil || b.Image != nil):
		return reply.BadRequest("Invalid request: `runtime` and `image` cannot be used with a snapshot source.")
	case v3 && b.Runtime != nil:
		return reply.BadRequest("Invalid request: should NOT have additional property `runtime`.")
	case b.Runtime != nil && !slices.Contains(runtimes, *b.Runtime):
		return reply.BadRequest("Invalid request: `runtime` should be equal to one of the allowed values %q.", strings.Join(runtimes, ", "))
	case b.Image != nil && (*b.Image == "" || len(*b.Image) > maxImageBytes):
		return reply.BadRequest("Invalid request: `image` should NOT be longer than %d characters.", maxImageBytes)
	case snapshot:
		return nil // what it was made from
	case b.Runtime != nil:
		s.runtime, s.image, s.legacy = *b.Runtime, "", true
	case b.Image != nil:
		s.runtime, s.image, s.legacy = "", *b.Image, false
	case s.runtime != "" || s.image != "": // a fork's
	case v3:
		s.image = defaultImage
	default:
		s.runtime, s.legacy = defaultRuntime, true
	}
	return nil
}

// findImage returns why a sandbox cannot be made from image; "" is none.
func (s *Server) findImage(image string) error {
	name, tag := splitImage(image)
	tags, own := images[name]
	if image == "" || own && (tag == "" || slices.Contains(tags, tag)) || slices.Contains(s.cfg.Images, name) {
		return nil
	}
	return reply.NotFound("Image '%s' not found.", image)
}

// splitImage takes the tag and the digest off.
func splitImage(image string) (name, tag string) {
	name, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	return name, tag
}
