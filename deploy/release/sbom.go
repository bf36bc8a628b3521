package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// bom is a bill of materials: CycloneDX 1.6, the part of it that a static Go program has.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   bomHead     `json:"metadata"`
	Components []component `json:"components"`
}

type bomHead struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// materials lists what the linker put into a program, by the record that it left there: each module with its
// version and the sum of go.sum, and Go itself. Nothing is looked up.
func materials(program, version string, at time.Time, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	b := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: bomHead{Timestamp: at.Format(time.RFC3339), Component: component{Type: "application", Name: program, Version: version}},
	}
	b.Components = append(b.Components, component{
		Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	})
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		if strings.HasPrefix(d.Path, "egressd/") { // of this tree: the linker has no version for it
			b.Components = append(b.Components, component{Type: "library", Name: d.Path, Version: version})
			continue
		}
		c := component{Type: "library", Name: d.Path, Version: d.Version, PURL: "pkg:golang/" + d.Path + "@" + d.Version}
		if d.Sum != "" {
			c.Properties = []property{{"go:sum", d.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}
