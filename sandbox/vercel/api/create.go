package api

import (
	"fmt"
	"regexp"
	"sync"

	"egressd/sandbox/vercel/api/firewall"
)

// CreateRequest is a sandbox to be made. Fields that are zero are not sent, and
// the service chooses; but Ports always is.
type CreateRequest struct {
	ProjectID          string            `json:"projectId,omitempty"` // "": the client's
	Name               string            `json:"name,omitempty"`      // "": the service makes up a unique one
	Ports              []int             `json:"ports"`
	Source             *Source           `json:"source,omitempty"`
	Timeout            Millis            `json:"timeout,omitempty"` // of the session; the service's default is 5 minutes
	Resources          *Resources        `json:"resources,omitempty"`
	Runtime            string            `json:"runtime,omitempty"` // of old: "node22"
	Image              string            `json:"image,omitempty"`
	Persistent         *bool             `json:"persistent,omitempty"`    // nil: the service's default, true
	NetworkPolicy      *firewall.Policy  `json:"networkPolicy,omitempty"` // nil: one that denies all
	Env                map[string]string `json:"env,omitempty"`           // of every command; readable inside
	Tags               map[string]string `json:"tags,omitempty"`
	SnapshotExpiration *Millis           `json:"snapshotExpiration,omitempty"` // 0: never
	KeepLastSnapshots  *KeepSnapshots    `json:"keepLastSnapshots,omitempty"`
	Region             string            `json:"region,omitempty"`
	FailoverRegions    []string          `json:"failoverRegions,omitempty"`
	NetworkID          string            `json:"networkId,omitempty"`

	Own bool `json:"-"` // the name was made up for this request: nobody else uses it
}

// ForkRequest is a sandbox to be made from another one. What is zero is as there.
type ForkRequest struct {
	Name               string            `json:"name,omitempty"` // "": the service makes up a unique one
	Ports              []int             `json:"ports,omitempty"`
	Timeout            Millis            `json:"timeout,omitempty"`
	Resources          *Resources        `json:"resources,omitempty"`
	Image              string            `json:"image,omitempty"`
	Persistent         *bool             `json:"persistent,omitempty"`
	NetworkPolicy      *firewall.Policy  `json:"networkPolicy,omitempty"`
	NetworkID          string            `json:"networkId,omitempty"`
	Env                map[string]string `json:"env,omitempty"`
	Tags               map[string]string `json:"tags,omitempty"`
	SnapshotExpiration *Millis           `json:"snapshotExpiration,omitempty"`
	KeepLastSnapshots  *KeepSnapshots    `json:"keepLastSnapshots,omitempty"`
	Region             string            `json:"region,omitempty"`
	FailoverRegions    []string          `json:"failoverRegions,omitempty"`
}

// Source is what the disk begins with.
type Source struct {
	Type       string `json:"type"` // git, tarball or snapshot
	URL        string `json:"url,omitempty"`
	Depth      int    `json:"depth,omitempty"`
	Revision   string `json:"revision,omitempty"`
	Username   string `json:"username,omitempty"`
	Password   string `json:"password,omitempty"`
	SnapshotID string `json:"snapshotId,omitempty"`
}

// Resources are the machine's.
type Resources struct {
	VCPUs    int `json:"vcpus,omitempty"`
	MemoryMB int `json:"memory,omitempty"` // 0: 2048 for each of VCPUs
}

// KeepSnapshots bounds the snapshots of a persistent sandbox.
type KeepSnapshots struct {
	Count         int    `json:"count"`
	Expiration    Millis `json:"expiration,omitempty"`
	DeleteEvicted *bool  `json:"deleteEvicted,omitempty"`
}

// UpdateRequest changes the configuration of later sessions. Nil is as it was.
type UpdateRequest struct {
	Persistent         *bool             `json:"persistent,omitempty"`
	Resources          *Resources        `json:"resources,omitempty"`
	Timeout            Millis            `json:"timeout,omitempty"`
	NetworkPolicy      *firewall.Policy  `json:"networkPolicy,omitempty"`
	Tags               map[string]string `json:"tags,omitempty"`
	Ports              *[]int            `json:"ports,omitempty"` // all of them
	Env                map[string]string `json:"env,omitempty"`
	SnapshotExpiration *Millis           `json:"snapshotExpiration,omitempty"`
	KeepLastSnapshots  *KeepSnapshots    `json:"keepLastSnapshots,omitempty"`
	CurrentSnapshotID  string            `json:"currentSnapshotId,omitempty"`
}

// What the service accepts (VERCEL's reference of the create endpoint).
const (
	nameMax    = 128
	portsMax   = 15
	portLeast  = 1024
	portMost   = 65535
	timeoutMin = 1000
	tagsMax    = 5
	tagMax     = 256
	imageMax   = 255
	keepMax    = 10
	dayMillis  = 86_400_000
)

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) })

// Validate reports what the service would refuse, as ErrInvalid.
func (r *CreateRequest) Validate() error {
	switch {
	case r.Name != "" && (len(r.Name) > nameMax || !nameForm().MatchString(r.Name)):
		return invalid("the name %q is not letters, digits, _ and -, %d at most", clip(r.Name, 100), nameMax)
	case r.Timeout != 0 && r.Timeout < timeoutMin:
		return invalid("a timeout of %d ms is less than a second", r.Timeout)
	case r.Runtime != "" && r.Image != "":
		return invalid("a runtime and an image exclude each other")
	case len(r.Image) > imageMax:
		return invalid("the image's name is longer than %d bytes", imageMax)
	case r.SnapshotExpiration != nil && *r.SnapshotExpiration != 0 && *r.SnapshotExpiration < dayMillis:
		return invalid("snapshots expire after a day or later, or never (0)")
	case r.KeepLastSnapshots != nil && (r.KeepLastSnapshots.Count < 1 || r.KeepLastSnapshots.Count > keepMax):
		return invalid("1 to %d snapshots can be kept", keepMax)
	}
	for _, check := range []error{validPorts(r.Ports), r.Resources.validate(), validTags(r.Tags), r.Source.validate(), validPolicy(r.NetworkPolicy)} {
		if check != nil {
			return check
		}
	}
	if r.Source != nil && r.Source.Type == "snapshot" && (r.Runtime != "" || r.Image != "") {
		return invalid("a snapshot brings its own runtime or image")
	}
	return nil
}

func validPolicy(p *firewall.Policy) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	return nil
}

func validPorts(ports []int) error {
	if len(ports) > portsMax {
		return invalid("%d ports are more than %d", len(ports), portsMax)
	}
	have := map[int]bool{}
	for _, p := range ports {
		if p < portLeast || p > portMost || have[p] {
			return invalid("port %d is given twice or not in %d to %d", p, portLeast, portMost)
		}
		have[p] = true
	}
	return nil
}

func (r *Resources) validate() error {
	if r == nil || r.VCPUs == 0 || r.VCPUs == 1 || r.VCPUs > 0 && r.VCPUs%2 == 0 {
		return nil
	}
	return invalid("%d vCPUs are neither 1 nor an even number", r.VCPUs)
}

func validTags(tags map[string]string) error {
	if len(tags) > tagsMax {
		return invalid("%d tags are more than %d", len(tags), tagsMax)
	}
	for k, v := range tags {
		if k == "" || len(k) > tagMax || len(v) > tagMax {
			return invalid("the tag %q has no name or is longer than %d bytes", clip(k, 100), tagMax)
		}
	}
	return nil
}

func (s *Source) validate() error {
	switch {
	case s == nil:
		return nil
	case (s.Type == "git" || s.Type == "tarball") && s.URL == "":
		return invalid("a source of type %s has no URL", s.Type)
	case s.Type == "snapshot" && s.SnapshotID == "":
		return invalid("a source of type snapshot has no snapshot id")
	case s.Type != "git" && s.Type != "tarball" && s.Type != "snapshot":
		return invalid("%q is not a type of source", clip(s.Type, 100))
	}
	return nil
}
