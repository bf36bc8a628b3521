package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
)

// project is where releases are published.
const project = "https://github.com/egressd/egressd"

//go:embed recipes
var recipeFiles embed.FS

// recipe is what the recipes of other package managers are filled with.
type recipe struct {
	Version, PackageVersion, URL string
	Archive, SHA256, SRI         map[string]string // by architecture
}

// recipes are the files by which Homebrew, Arch Linux and Nix install the archives, by file name. They need the
// sums of both architectures.
func recipes(version string, sums map[string][32]byte) ([]entry, error) {
	r := recipe{
		Version: strings.TrimPrefix(version, "v"), URL: project + "/releases/download/" + version,
		Archive: map[string]string{}, SHA256: map[string]string{}, SRI: map[string]string{},
	}
	r.PackageVersion = strings.ReplaceAll(r.Version, "-", "_") // Arch Linux splits at a hyphen
	for arch, sum := range sums {
		r.Archive[arch], r.SHA256[arch] = archiveName(version, arch), hex.EncodeToString(sum[:])
		r.SRI[arch] = "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	if len(sums) != 2 || r.SHA256["amd64"] == "" || r.SHA256["arm64"] == "" {
		return nil, fmt.Errorf("recipes are for amd64 and arm64, not for %d architectures", len(sums))
	}
	names, err := recipeFiles.ReadDir("recipes")
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, n := range names {
		t, err := template.New(n.Name()).Option("missingkey=error").ParseFS(recipeFiles, "recipes/"+n.Name())
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, r); err != nil {
			return nil, err
		}
		all = append(all, entry{strings.TrimSuffix(filepath.Base(n.Name()), ".tmpl"), 0o644, out.Bytes()})
	}
	return all, nil
}
