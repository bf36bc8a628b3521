//go:build system

package docs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// call is a command line of kubectl or helm, taken apart.
type call struct {
	namespace string
	files     []string // -f
	container string   // -c
	words     []string // neither flags nor their values
	rest      []string // after --
	other     []string // flags that the stand-in leaves to the real program
}

// takesValue are flags whose value is the next argument.
var takesValue = []string{"--set", "--set-string", "--set-json", "--values", "--timeout", "--version", "-o", "--from-file", "--dry-run", "--tail", "-l", "--selector", "--for"}

func parseCall(args []string) call {
	c := call{namespace: "default"}
	for i := 0; i < len(args); i++ {
		a := args[i]
		value := func() string {
			if _, v, ok := strings.Cut(a, "="); ok {
				return v
			}
			i++
			return args[min(i, len(args)-1)]
		}
		switch name, _, eq := strings.Cut(a, "="); {
		case a == "--":
			c.rest = args[i+1:]
			return c
		case name == "-n" || name == "--namespace":
			c.namespace = value()
		case name == "-f" || name == "--filename":
			c.files = append(c.files, value())
		case name == "-c" || name == "--container":
			c.container = value()
		case slices.Contains(takesValue, name) && !eq:
			c.other = append(c.other, a, value())
		case strings.HasPrefix(a, "-") && a != "-":
			c.other = append(c.other, a)
		default:
			c.words = append(c.words, a)
		}
	}
	return c
}

// become executes the next program of that name in PATH, behind this one.
func become(name string, args []string) int {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if to, err := filepath.EvalSymlinks(path); err == nil && to != env.self && filepath.Base(to) != "docs.test" {
			fmt.Fprintln(os.Stderr, unix.Exec(path, append([]string{name}, args...), os.Environ()))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: not installed\n", name)
	return 127
}

// runKubectl is kubectl in a world.
func runKubectl(args []string) int {
	c := parseCall(args)
	if len(c.words) == 0 || slices.ContainsFunc(c.other, func(f string) bool { return strings.HasPrefix(f, "--dry-run") }) || c.words[0] == "version" {
		return become("kubectl", args)
	}
	cl := newCluster()
	target := ""
	if len(c.words) > 1 {
		target = c.words[len(c.words)-1]
		target = target[strings.IndexByte(target, '/')+1:]
	}
	pod := podName(c.namespace, target)
	var err error
	switch c.words[0] {
	case "apply":
		err = eachFile(c.files, func(data []byte) error { return cl.apply(data, c.namespace) })
	case "delete":
		err = eachFile(c.files, func(data []byte) error { return cl.remove(data, c.namespace) })
	case "rollout":
		err = cl.rollout(c, target)
	case "exec":
		return cl.exec(c, pod)
	case "logs":
		return attach(os.Stdout, "logs", pod+"_"+c.container)
	case "get":
		err = cl.get(c)
	default:
		err = fmt.Errorf("this stand-in knows no %v", args)
	}
	return said(err)
}

func said(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func eachFile(files []string, f func([]byte) error) error {
	if len(files) == 0 {
		return fmt.Errorf("no -f")
	}
	for _, name := range files {
		data, err := io.ReadAll(os.Stdin)
		if name != "-" {
			data, err = os.ReadFile(name)
		}
		if err != nil {
			return err
		}
		if err := f(data); err != nil {
			return err
		}
	}
	return nil
}

// attach runs podman on this terminal, with its errors going to stderr.
func attach(stderr *os.File, args ...string) int {
	cmd := exec.Command("podman", append([]string{"--log-level=error"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, stderr
	if err := cmd.Run(); err != nil {
		return max(cmd.ProcessState.ExitCode(), 1)
	}
	return 0
}

func (cluster) exec(c call, pod string) int {
	return attach(os.Stderr, append([]string{"exec", pod + "_" + c.container}, c.rest...)...)
}

func (cl cluster) rollout(c call, target string) error {
	if _, err := os.Stat(cl.file(c.namespace, "Deployment", target)); err != nil {
		return fmt.Errorf("deployments.apps %q not found", target)
	}
	if c.words[1] == "restart" {
		data, err := os.ReadFile(cl.file(c.namespace, "Deployment", target))
		if err != nil {
			return err
		}
		objects, err := parseObjects(data)
		if err != nil {
			return err
		}
		objects[0].Meta.Namespace = c.namespace
		return cl.start(objects[0])
	}
	fmt.Printf("deployment %q successfully rolled out\n", target)
	return nil
}

// get lists the containers of the namespace's pods.
func (cl cluster) get(c call) error {
	if len(c.words) != 2 || !strings.HasPrefix(c.words[1], "pod") {
		return fmt.Errorf("this stand-in gets pods only")
	}
	out, err := podman("ps", "--filter", "label=pod", "--format", "{{.Names}} {{.State}}")
	if err == nil {
		fmt.Println("NAME STATUS")
		for line := range strings.SplitSeq(out, "\n") {
			if name, ok := strings.CutPrefix(line, c.namespace+"_"); ok && !strings.Contains(name, "_") {
				fmt.Println(strings.Replace(name, "running", "Running", 1))
			}
		}
	}
	return err
}

func (cl cluster) remove(data []byte, namespace string) error {
	objects, err := parseObjects(data)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Meta.Namespace == "" && o.Kind != "Namespace" {
			o.Meta.Namespace = namespace
		}
		if err := os.Remove(cl.file(o.Meta.Namespace, o.Kind, o.Meta.Name)); err != nil {
			return err
		}
		cl.stop(podName(o.Meta.Namespace, o.Meta.Name))
		fmt.Printf("%s %q deleted\n", strings.ToLower(o.Kind), o.Meta.Name)
	}
	return nil
}

// runHelm is helm in a world: the real one renders, and the world's cluster
// carries out.
func runHelm(args []string) int {
	c := parseCall(args)
	if len(c.words) == 0 {
		return become("helm", args)
	}
	cl := newCluster()
	release := func(name string) string { return filepath.Join(cl.dir, "release-"+name) }
	switch c.words[0] {
	case "install", "upgrade":
		text, err := render(c)
		if err == nil {
			err = cl.install(c, text, release(c.words[1]))
		}
		return said(err)
	case "uninstall":
		data, err := os.ReadFile(release(c.words[1]))
		if err == nil {
			err = cl.remove(data, c.namespace)
		}
		return said(err)
	case "test":
		return cl.test(c, release(c.words[1]))
	}
	return become("helm", args)
}

// render is helm template with the same flags.
func render(c call) ([]byte, error) {
	args := []string{"template", c.words[1], c.words[2], "-n", c.namespace}
	for _, f := range c.files {
		args = append(args, "-f", f)
	}
	for _, o := range c.other {
		if o != "--create-namespace" && o != "--install" && o != "--wait" {
			args = append(args, o)
		}
	}
	cmd := exec.Command("helm", args...)
	cmd.Env = append(os.Environ(), "PATH="+pathBehind())
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

// pathBehind is PATH without the stand-ins.
func pathBehind() string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Lstat(filepath.Join(dir, initRole)); err != nil {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// install keeps the test pods of a chart for helm test and applies the rest.
func (cl cluster) install(c call, text []byte, release string) error {
	objects, err := parseObjects(text)
	if err != nil {
		return err
	}
	var now, tests []byte
	for _, o := range objects {
		if _, hook := o.Meta.Notes["helm.sh/hook"]; hook {
			tests = append(append(tests, o.text...), "---\n"...)
			continue
		}
		now = append(append(now, o.text...), "---\n"...)
	}
	if err := cl.apply(now, c.namespace); err != nil {
		return err
	}
	if err := os.WriteFile(release, now, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(release+"-tests", tests, 0o644); err != nil {
		return err
	}
	fmt.Printf("NAME: %s\nNAMESPACE: %s\nSTATUS: deployed\n", c.words[1], c.namespace)
	return nil
}

// test runs the chart's test pods, each to its end.
func (cl cluster) test(c call, release string) int {
	data, err := os.ReadFile(release + "-tests")
	if err != nil {
		return said(err)
	}
	objects, err := parseObjects(data)
	if err != nil {
		return said(err)
	}
	if len(objects) == 0 {
		return said(fmt.Errorf("release %s has no tests", c.words[1]))
	}
	for _, o := range objects {
		o.Meta.Namespace = c.namespace
		last := o.pod().Containers
		out, err := cl.startAll(o, last[:0])
		if err == nil {
			out, err = podman(append([]string{"run"}, cl.flags(o, last[0])...)...)
		}
		cl.stop(podName(o.Meta.Namespace, o.Meta.Name))
		phase := "Succeeded"
		if err != nil {
			phase = "Failed"
		}
		fmt.Printf("TEST SUITE: %s\nPhase: %s\n%s\n", o.Meta.Name, phase, out)
		if err != nil {
			return 1
		}
	}
	return 0
}
