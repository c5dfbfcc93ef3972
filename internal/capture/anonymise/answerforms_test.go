package anonymise

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/test/archives"
)

// TestEachFieldHasARule: a new text of an answer needs a rule before it may go into an anonymised capture.
func TestEachFieldHasARule(t *testing.T) {
	rules, used := fieldRules(), map[string]bool{}
	for _, k := range answerKinds {
		for name := range textFields(k.of) {
			if used[name] = true; rules[name] == nil {
				t.Errorf("%s of %s has no rule", name, k.of)
			}
		}
	}
	for name := range rules {
		if !used[name] {
			t.Errorf("the rule of %s is of no recorded field", name)
		}
	}
	for _, k := range answerKinds { // those of a map are settings of a process
		for _, name := range mapFields(k.of) {
			if name != "Process.Env" && name != "Process.Conf" {
				t.Errorf("%s is a map without a rule", name)
			}
		}
	}
}

// eachField visits the recorded fields of a type, those of nested types included.
func eachField(of reflect.Type, visit func(name string, t reflect.Type)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
		return
	}
	for _, f := range answer.RecordedFields(of) {
		visit(ruleName(of, f.StructField), f.Type)
		eachField(f.Type, visit)
	}
}

// textFields returns the fields that may hold text or bytes.
func textFields(of reflect.Type) map[string]bool {
	out := map[string]bool{}
	eachField(of, func(name string, t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.String {
			out[name] = true
		}
	})
	return out
}

func mapFields(of reflect.Type) (out []string) {
	eachField(of, func(name string, t reflect.Type) {
		if t.Kind() == reflect.Map {
			out = append(out, name)
		}
	})
	return out
}

// TestRulesOfAnswers: what a rule knows stays, a name, a path, an address in any notation does not.
func TestRulesOfAnswers(t *testing.T) {
	foreign := []string{
		"b8:3f:d2:50:a1:c4", "B8:3F:D2:50:A1:C4", "b8-3f-d2-50-a1-c4", "b83fd250a1c4", "202576640221636", "alice@gpu-17",
		"/home/alice/x", "10.1.2.3:5000", "ba3f:d2ff:fe50:a1c4", "4dc3109b-e593-4fae-9077-8e4835b180e1",
	}
	shapes := map[string][]string{ // these get pseudonyms
		"IBLink.FarGUID": {"ba3f:d2ff:fe50:a1c4"}, "IBManager.GUID": {"ba3f:d2ff:fe50:a1c4"},
		"Process.Container": {"b83fd250a1c4"},
	}
	names := []string{ // a name may be any word: addresses as udev writes them get pseudonyms
		"RDMAPort.Netdev", "Event.Netdev", "Event.Device", "Registration.Device", "Registration.Function",
		"AsyncTotal.Device",
		"AsyncEvent.Device", "Process.Netdevs", "Pod.Devices",
	}
	all := []string{"IBLink.FarDescription", "GPU.Serial", "GPUFabric.Cluster", "Pod.Namespace", "Pod.Name"}
	rules := fieldRules()
	for _, field := range slices.Sorted(maps.Keys(rules)) {
		if slices.Contains(all, field) || slices.Contains(names, field) {
			continue
		}
		for _, text := range foreign {
			if got := rules[field](text); got == text && !slices.Contains(shapes[field], text) {
				t.Errorf("%s: %q is kept", field, text)
			}
		}
	}
	for field, text := range map[string]string{
		"Process.Command": "python3", "Process.NCCL": "2.27.3", "Event.Detail": "module 0, Cable error, High Temperature",
		"IBFEC.Mode": "RS(544,514)", "HealthReporter.Device": "mlx5_core.sf.4", "Stat.Name": "rx_bytes_phy [0]",
		"Process.Unit": "session-3.scope", "GPU.Model": "NVIDIA H200", "NVML.Driver": "570.133.20",
	} {
		if got := rules[field](text); got != text {
			t.Errorf("%s: %q became %q", field, text, got)
		}
	}
	for text, want := range map[string]string{ // words of the kernel, but for the address
		"cmd_out_of_range":               "cmd_out_of_range",
		"b8_3f_d2_50_a1_c4":              unknownText,
		"B83FD250A1C4":                   unknownText,
		"module 0, BA3F_D2FF_FE50, 106W": "module 0, x, 106W",
	} {
		if got := rules["Event.Detail"](text); got != want {
			t.Errorf("Event.Detail: %q became %q, want %q", text, got, want)
		}
	}
}

// TestUnknownLinesOfAnswers: a line that this version does not know is left out, and the entry is named. Others are
// unchanged, whatever their order.
func TestUnknownLinesOfAnswers(t *testing.T) {
	const file = "rdma/mlx5_0/1/port"
	for text, want := range map[string]struct {
		text string
		left []string
	}{
		"physical_state: 5\n":                    {"physical_state: 5\n", nil},
		"physical_state: 5\nstate: 4\n":          {"physical_state: 5\nstate: 4\n", nil},
		"physical_state: 5\nowner: ann\n":        {"physical_state: 5\n", []string{file + capture.InPart}},
		"owner: ann\nphysical_state: 5\n":        {"physical_state: 5\n", []string{file + capture.InPart}},
		"physical_state: 5\nphysical_state: 5\n": {"physical_state: 5\n", []string{file + capture.InPart}},
	} {
		a := archives.Parse(t, archives.Header+"-- "+file+" --\n"+text)
		Archive(a)
		if got := string(a.Rounds[0].Entries[0].Data); got != want.text || !slices.Equal(a.Meta.LeftOut, want.left) {
			t.Errorf("%q: %q, left out %q, want %q, %q", text, got, a.Meta.LeftOut, want.text, want.left)
		}
	}
}
