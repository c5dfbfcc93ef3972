package chart

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

func itoa(i int) string { return strconv.Itoa(i) }

// kinds are all that the chart may render.
var kinds = map[string]any{
	"apps/v1 DaemonSet":                       appsv1.DaemonSet{},
	"v1 ConfigMap":                            corev1.ConfigMap{},
	"v1 Secret":                               corev1.Secret{},
	"v1 Service":                              corev1.Service{},
	"v1 ServiceAccount":                       corev1.ServiceAccount{},
	"networking.k8s.io/v1 NetworkPolicy":      networkingv1.NetworkPolicy{},
	"monitoring.coreos.com/v1 PodMonitor":     monitoringv1.PodMonitor{},
	"monitoring.coreos.com/v1 ServiceMonitor": monitoringv1.ServiceMonitor{},
	"monitoring.coreos.com/v1 PrometheusRule": monitoringv1.PrometheusRule{},
}

// object decodes a document strictly: an unknown or doubled field, or a value of another type, is an error.
func object(t *testing.T, d document) any {
	t.Helper()
	var m struct {
		APIVersion string `json:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name, Namespace string
			Labels          map[string]string
		}
	}
	if err := yaml.Unmarshal([]byte(d.text), &m); err != nil {
		t.Fatalf("%s: %v\n%s", d.template, err, d.text)
	}
	kind, ok := kinds[m.APIVersion+" "+m.Kind]
	if !ok {
		t.Fatalf("%s: %s %s", d.template, m.APIVersion, m.Kind)
	}
	if problems := validation.IsDNS1123Subdomain(m.Metadata.Name); len(problems) > 0 {
		t.Errorf("%s: name %s: %v", d.template, m.Metadata.Name, problems)
	}
	for name, value := range m.Metadata.Labels {
		if problems := slices.Concat(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)); len(problems) > 0 {
			t.Errorf("%s: label %s=%s: %v", d.template, name, value, problems)
		}
	}
	if m.Metadata.Namespace != namespace {
		t.Errorf("%s: namespace %s", d.template, m.Metadata.Namespace)
	}
	into := reflect.New(reflect.TypeOf(kind)).Interface()
	if err := yaml.UnmarshalStrict([]byte(d.text), into); err != nil {
		t.Errorf("%s: %v\n%s", d.template, err, d.text)
	}
	return into
}

// TestTypes: each object is one of its kind, with every field known there.
func TestTypes(t *testing.T) {
	c := load(t)
	for name, values := range sets(t) {
		t.Run(name, func(t *testing.T) {
			daemons := 0
			for _, d := range documents(t, c, values) {
				if ds, ok := object(t, d).(*appsv1.DaemonSet); ok {
					daemons++
					verifyDaemonSet(t, ds)
				}
			}
			if daemons != 1 {
				t.Errorf("%d DaemonSets", daemons)
			}
		})
	}
}

// verifyDaemonSet: what the types do not say.
func verifyDaemonSet(t *testing.T, ds *appsv1.DaemonSet) {
	spec := ds.Spec.Template.Spec
	for k, v := range ds.Spec.Selector.MatchLabels {
		if ds.Spec.Template.Labels[k] != v {
			t.Errorf("the selector's %s=%s is not the pods'", k, v)
		}
	}
	var names []string
	for _, v := range spec.Volumes {
		names = append(names, v.Name)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, m := range c.VolumeMounts {
			if !slices.Contains(names, m.Name) {
				t.Errorf("%s: there is no volume %s", c.Name, m.Name)
			}
		}
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: %+v", c.Name, s)
		}
		if !c.Resources.Limits.Cpu().IsZero() {
			t.Errorf("%s: a CPU limit", c.Name)
		}
	}
	c := spec.Containers[0]
	// In a container what is added is given to uid 0 only.
	if added := len(c.SecurityContext.Capabilities.Add) > 0; added != (*spec.SecurityContext.RunAsUser == 0) || added == *spec.SecurityContext.RunAsNonRoot {
		t.Errorf("capabilities %v, user %d", c.SecurityContext.Capabilities.Add, *spec.SecurityContext.RunAsUser)
	}
	if wants := slices.Contains(c.SecurityContext.Capabilities.Add, "SYS_PTRACE"); spec.HostPID != wants || !spec.HostNetwork || *spec.AutomountServiceAccountToken {
		t.Errorf("host PID %t, network %t", spec.HostPID, spec.HostNetwork)
	}
	limit := c.Resources.Limits.Memory().Value() >> 20
	for _, e := range c.Env {
		if e.Name == "GOMEMLIMIT" && e.Value != itoa(int(limit*80/100))+"MiB" {
			t.Errorf("GOMEMLIMIT %s of %d MiB", e.Value, limit)
		}
	}
	web := strings.Contains(strings.Join(c.Args, " "), "--web.config.file")
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if (p.Exec != nil) != web || (p.HTTPGet != nil) == web {
			t.Errorf("probe %+v", p)
		}
	}
	if b, err := json.Marshal(ds); err != nil || strings.Contains(string(b), "privileged") {
		t.Errorf("%v", err)
	}
}
