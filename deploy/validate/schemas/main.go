// Schemas writes, beside itself, the JSON schemas that kubeconform checks our
// manifests against: cut out of the OpenAPI document in the Kubernetes module,
// without descriptions, and strict (an unknown field is an error).
//
//	go run ./schemas
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubernetes is the release whose API the schemas are of.
const kubernetes = "k8s.io/kubernetes@v1.36.3"

// operator is the release of the Prometheus operator whose kinds the schemas are of.
const operator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// operatorKinds maps kubeconform's file names to the names of the operator's files.
var operatorKinds = map[string]string{"podmonitor-monitoring-v1": "podmonitors", "prometheusrule-monitoring-v1": "prometheusrules"}

// kinds maps kubeconform's file names to the definitions they stand for.
var kinds = map[string]string{
	"configmap-v1":                           "io.k8s.api.core.v1.ConfigMap",
	"namespace-v1":                           "io.k8s.api.core.v1.Namespace",
	"pod-v1":                                 "io.k8s.api.core.v1.Pod",
	"service-v1":                             "io.k8s.api.core.v1.Service",
	"serviceaccount-v1":                      "io.k8s.api.core.v1.ServiceAccount",
	"deployment-apps-v1":                     "io.k8s.api.apps.v1.Deployment",
	"poddisruptionbudget-policy-v1":          "io.k8s.api.policy.v1.PodDisruptionBudget",
	"horizontalpodautoscaler-autoscaling-v2": "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
	"job-batch-v1":                           "io.k8s.api.batch.v1.Job",
	"networkpolicy-networking-v1":            "io.k8s.api.networking.v1.NetworkPolicy",
	"validatingadmissionpolicy-admissionregistration-v1":        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
	"validatingadmissionpolicybinding-admissionregistration-v1": "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

// download reports where the files of a module are.
func download(module string) (dir string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	var got struct{ Dir string }
	err = json.Unmarshal(out, &got)
	return got.Dir, err
}

func run() error {
	dir, err := download(kubernetes)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return err
	}
	var api struct {
		Definitions map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(data, &api); err != nil {
		return err
	}
	for file, name := range kinds {
		if err := write(file, name, api.Definitions); err != nil {
			return err
		}
	}
	return operated()
}

// operated writes the schemas of the operator's kinds.
func operated() error {
	dir, err := download(operator)
	if err != nil {
		return err
	}
	for file, name := range operatorKinds {
		data, err := os.ReadFile(filepath.Join(dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+name+".yaml"))
		if err != nil {
			return err
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Name   string `json:"name"`
					Schema struct {
						V3 map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			return err
		}
		if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != "v1" {
			return fmt.Errorf("%s has other versions than v1", name)
		}
		out, err := json.Marshal(tighten(crd.Spec.Versions[0].Schema.V3))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join("schemas", file+".json"), append(out, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// write makes one file with the definition and all that it refers to.
func write(file, name string, all map[string]any) error {
	used := map[string]any{}
	if err := collect(name, all, used); err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"$ref":        "#/definitions/" + name,
		"definitions": used,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("schemas", file+".json"), append(data, '\n'), 0o644)
}

func collect(name string, all, used map[string]any) error {
	if _, done := used[name]; done {
		return nil
	}
	def, ok := all[name].(map[string]any)
	if !ok {
		return errors.New("no definition of " + name)
	}
	strict := tighten(def).(map[string]any)
	if strings.HasSuffix(name, ".Quantity") { // 1 is as good as "1"
		strict["type"] = []string{"string", "number"}
	}
	used[name] = strict
	return references(strict, func(ref string) error {
		return collect(strings.TrimPrefix(ref, "#/definitions/"), all, used)
	})
}

// tighten drops what does not validate, and says that no other property may be.
func tighten(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if f := v["format"]; f == "int-or-string" {
			return map[string]any{"type": []string{"string", "integer"}}
		}
		out := map[string]any{}
		for k, x := range v {
			switch k {
			case "description", "format", "default":
				if _, text := x.(string); text || k == "default" {
					continue
				}
			case "properties":
				out["additionalProperties"] = false
				props := map[string]any{}
				for name, p := range x.(map[string]any) {
					props[name] = tighten(p)
				}
				out[k] = props
				continue
			}
			if !strings.HasPrefix(k, "x-kubernetes-") {
				out[k] = tighten(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = tighten(x)
		}
		return out
	}
	return v
}

func references(v any, f func(string) error) error {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if ref, ok := x.(string); ok && k == "$ref" {
				if err := f(ref); err != nil {
					return err
				}
			} else if err := references(x, f); err != nil {
				return err
			}
		}
	case []any:
		for _, x := range v {
			if err := references(x, f); err != nil {
				return err
			}
		}
	}
	return nil
}
