//go:build system

package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflow is the part of GitHub's workflow syntax that the pages use; an
// action.yml of the "composite" kind has steps of the same form. It is decoded
// strictly: what is not here would not be carried out.
type workflow struct {
	Name        string            `yaml:"name"`
	On          any               `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		RunsOn string            `yaml:"runs-on"`
		Env    map[string]string `yaml:"env"`
		Steps  []step            `yaml:"steps"`
	} `yaml:"jobs"`
}

type step struct {
	Name     string            `yaml:"name"`
	ID       string            `yaml:"id"`
	If       string            `yaml:"if"`
	Uses     string            `yaml:"uses"`
	Run      string            `yaml:"run"`
	Shell    string            `yaml:"shell"`
	Dir      string            `yaml:"working-directory"`
	Env      map[string]string `yaml:"env"`
	With     map[string]string `yaml:"with"`
	Continue bool              `yaml:"continue-on-error"`
}

type action struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Inputs      map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
		Required    bool   `yaml:"required"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

func strictly(text string, into any) error {
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	return dec.Decode(into)
}

// known are actions that a world has no use for: the checkout is there, and so
// is Go.
var known = []string{"actions/checkout@v4", "actions/setup-go@v5", "actions/upload-artifact@v4"}

// ourAction is the action of this repository as others name it.
const ourAction = "egressd/egressd/deploy/github-action@main"

// runner carries out steps.
type runner struct {
	s      *shell
	vars   map[string]string // of expressions: inputs.x, runner.temp, ...
	env    map[string]string
	failed bool
	errs   []error
}

func checkWorkflow(b block, _ []map[string]any, s *shell) error {
	var w workflow
	if err := strictly(b.text, &w); err != nil {
		return err
	}
	if len(w.Jobs) == 0 || w.On == nil {
		return errors.New("a workflow needs on: and jobs:")
	}
	var errs []error
	for name, job := range w.Jobs {
		if job.RunsOn == "" || len(job.Steps) == 0 {
			errs = append(errs, fmt.Errorf("job %s has no runs-on or no steps", name))
			continue
		}
		r := newRunner(s)
		for k, v := range job.Env {
			r.env[k] = v
		}
		r.steps(job.Steps, ".")
		errs = append(errs, r.errs...)
	}
	return errors.Join(errs...)
}

func checkSteps(b block, s *shell) error {
	var steps []step
	if err := strictly(b.text, &steps); err != nil {
		return err
	}
	r := newRunner(s)
	r.steps(steps, ".")
	return errors.Join(r.errs...)
}

func newRunner(s *shell) *runner {
	temp := filepath.Join(s.dir, "tmp")
	return &runner{
		s:    s,
		vars: map[string]string{"runner.temp": temp, "github.workspace": filepath.Join(s.dir, "work")},
		env:  map[string]string{"RUNNER_TEMP": temp, "GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_WORKSPACE": filepath.Join(s.dir, "work")},
	}
}

// steps runs steps as a runner does: after a failure only those that say so.
func (r *runner) steps(list []step, at string) {
	for i, st := range list {
		if run, err := r.wanted(st.If); err != nil {
			r.errs = append(r.errs, fmt.Errorf("step %d: %w", i+1, err))
			continue
		} else if !run {
			continue
		}
		var err error
		switch {
		case st.Uses == "" && st.Run != "":
			err = r.run(st, at)
		case st.Run == "" && slices.Contains(known, st.Uses):
			err = r.pathsExist(st)
		case st.Run == "" && (st.Uses == ourAction || st.Uses == "./deploy/github-action"):
			err = r.ours(st)
		default:
			err = fmt.Errorf("uses %q, run %q: nobody knows how to carry this out", st.Uses, st.Run)
		}
		if err != nil && !st.Continue {
			r.failed = true
			r.errs = append(r.errs, fmt.Errorf("step %d (%s): %w", i+1, st.Name+st.Uses, err))
		}
	}
}

// wanted evaluates the conditions that the pages use.
func (r *runner) wanted(cond string) (bool, error) {
	cond = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(cond), "${{"), "}}"))
	switch {
	case cond == "":
		return !r.failed, nil
	case cond == "always()":
		return true, nil
	}
	m := regexp.MustCompile(`^(always\(\) && )?(inputs\.[a-z-]+) (!=|==) '([^']*)'$`).FindStringSubmatch(cond)
	if m == nil {
		return false, fmt.Errorf("a condition that is not understood: %s", cond)
	}
	return ((r.vars[m[2]] == m[4]) == (m[3] == "==")) && (m[1] != "" || !r.failed), nil
}

// pathsExist holds upload-artifact to its word.
func (r *runner) pathsExist(st step) error {
	path, ok := st.With["path"]
	if !ok {
		return nil
	}
	text, err := r.expand(path)
	if err != nil {
		return err
	}
	for p := range strings.FieldsSeq(text) {
		if err := r.s.check("test -s " + p); err != nil {
			return err
		}
	}
	return nil
}

var expression = regexp.MustCompile(`\$\{\{ *([a-zA-Z_.-]+) *\}\}`)

func (r *runner) expand(text string) (string, error) {
	var unknown error
	out := expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		v, ok := r.vars[name]
		if !ok {
			unknown = fmt.Errorf("%s is not known", name)
		}
		return v
	})
	if unknown == nil && strings.Contains(out, "${{") {
		unknown = fmt.Errorf("an expression that is not understood: %s", out)
	}
	return out, unknown
}

// ours runs this repository's composite action.
func (r *runner) ours(st step) error {
	data, err := os.ReadFile(filepath.Join(root, "deploy/github-action/action.yml"))
	if err != nil {
		return err
	}
	var a action
	if err := strictly(string(data), &a); err != nil {
		return err
	}
	inner := newRunner(r.s)
	inner.vars["github.action_path"] = filepath.Join(r.s.dir, "work/deploy/github-action")
	inner.env["GITHUB_ACTION_PATH"] = inner.vars["github.action_path"]
	for name, in := range a.Inputs {
		v, given := st.With[name]
		if !given {
			v = in.Default
		}
		if in.Required && v == "" {
			return fmt.Errorf("input %s is required", name)
		}
		if inner.vars["inputs."+name], err = r.expand(v); err != nil {
			return err
		}
	}
	for name := range st.With {
		if _, ok := a.Inputs[name]; !ok {
			return fmt.Errorf("the action has no input %s", name)
		}
	}
	for k, v := range r.env {
		inner.env[k] = v
	}
	inner.steps(a.Runs.Steps, ".")
	for name, out := range a.Outputs {
		if r.vars["steps."+st.ID+".outputs."+name], err = inner.expand(out.Value); err != nil {
			return err
		}
	}
	return errors.Join(inner.errs...)
}

// run is one "run" step: bash with -e and pipefail, as the runner starts it.
func (r *runner) run(st step, at string) error {
	text, err := r.expand(st.Run)
	if err != nil {
		return err
	}
	dir, err := r.expand(st.Dir)
	if err != nil {
		return err
	}
	log := filepath.Join(r.s.dir, "log")
	n := r.s.n
	script, output := filepath.Join(log, fmt.Sprint(n, "-step.sh")), filepath.Join(log, fmt.Sprint(n, "-output"))
	var head strings.Builder
	env := map[string]string{"GITHUB_OUTPUT": output, "GITHUB_ENV": output + ".env", "GITHUB_PATH": output + ".path", "GITHUB_STEP_SUMMARY": output + ".md"}
	for _, m := range []map[string]string{r.env, st.Env} {
		for k, v := range m {
			if env[k], err = r.expand(v); err != nil {
				return err
			}
		}
	}
	for k, v := range env {
		fmt.Fprintf(&head, "export %s=%s\n", k, quote(v))
	}
	fmt.Fprintf(&head, "while read -r dir; do PATH=$dir:$PATH; done < <(cat %s/paths 2>/dev/null)\nset -eo pipefail\ncd %s\n", log, quote(filepath.Join(at, dir)))
	if err := os.WriteFile(script, []byte(head.String()+text), 0o644); err != nil {
		return err
	}
	if err := r.s.check("bash " + script); err != nil {
		return err
	}
	return r.collect(st, output)
}

// collect takes over what a step wrote for later steps.
func (r *runner) collect(st step, output string) error {
	read := func(suffix string) string {
		data, _ := os.ReadFile(output + suffix) // none: nothing was written
		return string(data)
	}
	for line := range strings.Lines(read("")) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			r.vars["steps."+st.ID+".outputs."+k] = v
		}
	}
	for line := range strings.Lines(read(".env")) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			r.env[k] = v
		}
	}
	if paths := read(".path"); paths != "" {
		f, err := os.OpenFile(filepath.Join(r.s.dir, "log/paths"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString(paths)
		return errors.Join(err, f.Close())
	}
	return nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
