//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// doubleProgram is the program double of the scripts, which asks the double of the hosted API what
// it got and what it has, where the environment says that it is.
//
//	double requests          METHOD PATH of every request, with names that differ from run to run taken out
//	double words WORD        those that hold a word in their body, header or query
//	double forget            forgets them
//	double left              status of every sandbox and session that is not stopped
//	double running           status of every session that is not stopped
//	double snapshots         ID STATUS of those that are there
//	double delete-snapshot   deletes the first of them
//	double names             of the sandboxes
func doubleProgram() {
	if err := askDouble(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "double:", err)
		os.Exit(1)
	}
}

func askDouble(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "requests":
		return eachRequest(func(r apiRequest) string { return r.method() + r.program() })
	case len(args) == 2 && args[0] == "words":
		return eachRequest(func(r apiRequest) string {
			header, _ := json.Marshal(r.Header) // strings
			if !bytes.Contains(r.Body, []byte(args[1])) && !bytes.Contains(header, []byte(args[1])) && !strings.Contains(r.Query, args[1]) {
				return ""
			}
			return r.method()
		})
	case len(args) == 1 && args[0] == "forget":
		return callDouble("DELETE", "/_double/requests", nil)
	case len(args) == 1 && args[0] == "left":
		return errors.Join(eachThing("/api/v2/sandboxes", "left"), eachThing("/api/v2/sandboxes/sessions", "left"))
	case len(args) == 1 && args[0] == "running":
		return eachThing("/api/v2/sandboxes/sessions", "running")
	case len(args) == 1 && args[0] == "snapshots":
		return eachThing("/api/v2/sandboxes/snapshots", "created")
	case len(args) == 1 && args[0] == "names":
		return eachThing("/api/v2/sandboxes", "names")
	case len(args) == 1 && args[0] == "delete-snapshot":
		var got struct{ Snapshots []apiThing }
		if err := callDouble("GET", "/api/v2/sandboxes/snapshots", &got); err != nil {
			return err
		}
		for _, s := range got.Snapshots {
			if s.Status == "created" {
				return callDouble("DELETE", "/api/v2/sandboxes/snapshots/"+s.ID, nil)
			}
		}
		return errors.New("there is no snapshot")
	}
	return fmt.Errorf("what is %q?", args)
}

// callDouble sends one request, past any proxy, and decodes the answer.
func callDouble(method, path string, into any) error {
	u, err := url.Parse(os.Getenv("VERCEL_SANDBOX_API_URL"))
	if err != nil {
		return err
	}
	u.Path = path
	u.RawQuery = url.Values{"project": {os.Getenv("VERCEL_PROJECT_ID")}, "teamId": {os.Getenv("VERCEL_TEAM_ID")}}.Encode()
	req, err := http.NewRequest(method, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("VERCEL_TOKEN"))
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s %w", method, path, resp.Status, body, err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// apiRequest is what the double keeps of a request.
type apiRequest struct {
	Method string
	Path   string
	Query  string
	Header map[string]any
	Body   []byte
}

var (
	sessionID = regexp.MustCompile(`sbx_[A-Za-z0-9]*`)
	runName   = regexp.MustCompile(`/launch-[a-z0-9]*`)
)

func (r apiRequest) method() string {
	return r.Method + " " + runName.ReplaceAllString(sessionID.ReplaceAllString(r.Path, "SESSION"), "/NAME")
}

// program is the program that the request starts.
func (r apiRequest) program() string {
	if !strings.HasSuffix(r.Path, "/cmd") {
		return ""
	}
	var body struct{ Command string }
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return " " + err.Error()
	}
	return " " + body.Command
}

func eachRequest(line func(apiRequest) string) error {
	var got []apiRequest
	if err := callDouble("GET", "/_double/requests", &got); err != nil {
		return err
	}
	for _, r := range got {
		if s := line(r); s != "" {
			fmt.Println(s)
		}
	}
	return nil
}

// apiThing is a sandbox, a session or a snapshot.
type apiThing struct {
	ID, Name, Status  string
	SourceSandboxName *string
}

func eachThing(path, which string) error {
	var got struct{ Sandboxes, Sessions, Snapshots []apiThing }
	if err := callDouble("GET", path, &got); err != nil {
		return err
	}
	for _, x := range append(append(got.Sandboxes, got.Sessions...), got.Snapshots...) {
		switch {
		case which == "names":
			fmt.Println(x.Name)
		case which == "created" && x.Status == "created":
			fmt.Println(x.ID, x.Status)
		case which == "running" && x.Status != "stopped", which == "left" && (x.SourceSandboxName == nil || x.Status != "stopped"):
			fmt.Println(x.Status)
		}
	}
	return nil
}
