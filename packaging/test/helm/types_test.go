package chart

import (
	"encoding/json"
	"errors"
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

// typed gives the object, a pointer to one of the type of value, and what is wrong with it: an unknown or doubled
// field, a required one that is missing, a value of another type or none of those allowed.
func typed(kind string, value any, text string) (into any, problems []error) {
	into = reflect.New(reflect.TypeOf(value)).Interface()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		problems = append(problems, err)
	}
	return into, slices.Concat(problems, schemaProblems(kind, text), enumProblems("", reflect.ValueOf(into)))
}

// object returns the object in a document, which has to be valid.
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
		if problems := slices.Concat(validation.IsQualifiedName(name),
			validation.IsValidLabelValue(value)); len(problems) > 0 {
			t.Errorf("%s: label %s=%s: %v", d.template, name, value, problems)
		}
	}
	if m.Metadata.Namespace != namespace {
		t.Errorf("%s: namespace %s", d.template, m.Metadata.Namespace)
	}
	into, problems := typed(m.APIVersion+" "+m.Kind, kind, d.text)
	for _, err := range problems {
		t.Errorf("%s: %v\n%s", d.template, err, d.text)
	}
	return into
}

// TestTypes: each object is one of its kind, with every field known and every value allowed there.
func TestTypes(t *testing.T) {
	c := load(t)
	if oldest := ">=" + releases[0] + ".0-0"; c.Metadata.KubeVersion != oldest {
		t.Errorf("Chart.yaml has kubeVersion %s, and the oldest schemas are of %s", c.Metadata.KubeVersion, oldest)
	}
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

// TestWrong: TestTypes sees what a cluster would refuse.
func TestWrong(t *testing.T) {
	var all []document
	for _, values := range sets(t) {
		all = append(all, documents(t, load(t), values)...)
	}
	for _, test := range []struct{ kind, old, new, want string }{
		{"apps/v1 DaemonSet", "  selector:", "  minReadySeconds: 1\n  x:", "missing property 'selector'"},
		{"apps/v1 DaemonSet", "- name: rdma-exporter", "- image: x", "missing property 'name'"},
		{"apps/v1 DaemonSet", "hostNetwork: true", "hostnetwork: true", "additional properties 'hostnetwork' not allowed"},
		{"apps/v1 DaemonSet", "hostNetwork: true", "resourceClaims: []", "additional properties 'resourceClaims' not allowed"}, // Kubernetes 1.26 brings it
		{"apps/v1 DaemonSet", "hostNetwork: true", "hostNetwork: 1", "got number, want boolean"},
		{"apps/v1 DaemonSet", "maxUnavailable: 10%", "maxUnavailable: [1]", "got array, want integer"},
		{"apps/v1 DaemonSet", "type: RollingUpdate", "type: Rolling", `UpdateStrategy.Type is "Rolling"`},
		{"apps/v1 DaemonSet", "imagePullPolicy: IfNotPresent", "imagePullPolicy: Sometimes", `].ImagePullPolicy is "Sometimes"`},
		{"apps/v1 DaemonSet", "type: Directory}", "type: Folder}", `HostPath.Type is "Folder"`},
		{"v1 Service", "port: 10879, ", "", "missing property 'port'"},
		{"v1 Service", "protocol: TCP", "protocol: tcp", `Ports[0].Protocol is "tcp"`},
		{"networking.k8s.io/v1 NetworkPolicy", "[Ingress]", "[ingress]", `PolicyTypes[0] is "ingress"`},
		{"networking.k8s.io/v1 NetworkPolicy", "port: 10879", "port: {}", "got object, want integer"},
		{"monitoring.coreos.com/v1 PodMonitor", "  selector:", "  namespaceSelector:", "missing property 'selector'"},
		{"monitoring.coreos.com/v1 PodMonitor", "scheme: http", "scheme: ftp", "scheme': value must be one of 'http'"},
		{"monitoring.coreos.com/v1 ServiceMonitor", "interval: 15s", "interval: 15 s", "'15 s' does not match pattern"},
		{"monitoring.coreos.com/v1 PrometheusRule", "- name:", "- limit: 1 #", "missing property 'name'"},
	} {
		version, name, _ := strings.Cut(test.kind, " ")
		i := slices.IndexFunc(all, func(d document) bool {
			return strings.Contains(d.text, "apiVersion: "+version+"\nkind: "+name+"\n") && strings.Contains(d.text, test.old)
		})
		if i < 0 {
			t.Errorf("no %s with %q", test.kind, test.old)
			continue
		}
		_, problems := typed(test.kind, kinds[test.kind], strings.Replace(all[i].text, test.old, test.new, 1))
		if text := errors.Join(problems...); text == nil || !strings.Contains(text.Error(), test.want) {
			t.Errorf("%s: %s for %s: %v", test.kind, test.new, test.old, text)
		}
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
		if !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s writes to its image", c.Name)
		}
		if s.Privileged == nil &&
			(*s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"})) {
			t.Errorf("%s: %+v", c.Name, s)
		}
		if !c.Resources.Limits.Cpu().IsZero() {
			t.Errorf("%s: a CPU limit", c.Name)
		}
	}
	c := spec.Containers[0]
	// Only a privileged container may open /dev/kmsg. It has all capabilities.
	kmsg := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/dev/kmsg" })
	if privileged := c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged; privileged != kmsg ||
		privileged == (c.SecurityContext.AllowPrivilegeEscalation != nil) {
		t.Errorf("privileged %t, with /dev/kmsg %t", privileged, kmsg)
	}
	var added []corev1.Capability
	if c.SecurityContext.Capabilities != nil {
		added = c.SecurityContext.Capabilities.Add
	}
	kubelet := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == "/var/lib/kubelet/pod-resources" && m.ReadOnly
	})
	if asks := strings.Contains(strings.Join(c.Args, " "),
		"--collector.gdr.pod-resources=/var/lib/kubelet/pod-resources/"); asks != kubelet {
		t.Errorf("--collector.gdr.pod-resources %t, with the kubelet's socket %t", asks, kubelet)
	}
	// In a container what is added is given to uid 0 only, and the kubelet's socket permits uid 0 only.
	if more := len(added) > 0 || kmsg ||
		kubelet; more != (*spec.SecurityContext.RunAsUser == 0) || more == *spec.SecurityContext.RunAsNonRoot {
		t.Errorf("capabilities %v, user %d", added, *spec.SecurityContext.RunAsUser)
	}
	if wants := slices.Contains(added, "SYS_PTRACE"); spec.HostPID != wants || !spec.HostNetwork ||
		*spec.AutomountServiceAccountToken {
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
	if b, err := json.Marshal(ds); err != nil || strings.Contains(string(b), "privileged") != kmsg {
		t.Errorf("%v", err)
	}
}
