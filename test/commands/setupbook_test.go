package commands_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/setup"
	"rdma_exporter/test/machines"
)

// bookMachines are set up by the guides, freshMachines are the same hosts with a fresh image and a job of another
// cluster.
var (
	bookMachines  = []string{"hgx-h200-topology-file-ok", "dgx-h100-by-the-book-ok", "spark-mesh-ok"}
	freshMachines = []string{"hgx-h200-fresh", "dgx-h100-fresh", "spark-subnet-twice-ok"}
)

// differsElsewhere are settings that a fresh image does not change, with a machine on which they differ.
var differsElsewhere = map[string]string{
	"ofed_not_in_use":      "ofed-not-in-use",
	"ecn_on_rdma_priority": "notification-off",
	"nccl_default_gid":     "no-v2-gid",
}

// goodByDefault are settings that are as wanted where nothing is set, with the reason.
var goodByDefault = map[string]string{
	"dscp_map":              "mlx5 maps DSCP 26 to priority 3",
	"cnp_priority_apart":    "mlx5 sends notifications with priority 6",
	"ets_class_of_rdma":     "mlx5 gives each priority a class of its own",
	"default_traffic_class": "jobs of these machines set the class of their packets",
	"services_at_boot":      "neither opensm nor openibd is on these machines (internal/setup: TestServicesAtBoot)",
	"umad_loaded":           "nothing on these machines needs ib_umad (internal/setup: TestServicesAtBoot)",
	"roce_default_gid_type": "the connection manager of the kernel uses RoCE v2; the files exist only after mkdir",
}

// notInBook are settings without a row on the machines set up by the guides, with the reason.
var notInBook = map[string]string{
	"job_traffic_class": "the class of the port overrides that of jobs",
	"ats":               "nothing is wanted without translation",
	"services_at_boot":  "neither opensm nor openibd is on these machines",
	"umad_loaded":       "nothing on these machines needs ib_umad",
}

func settingsOf(t *testing.T, machine string) check.Setup {
	t.Helper()
	code, out, errs := runProgram(t, "check", "--setup", "--json", "--replay", machines.Fixture(machine))
	var s check.Setup
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != s.ExitCode || len(s.Settings) == 0 {
		t.Fatalf("%s: exit code %d: %v\n%s", machine, code, err, errs)
	}
	return s
}

// TestSetupOfBook: on hosts set up by the guides each setting is as wanted, and each setting of the table is evaluated
// on one of them.
func TestSetupOfBook(t *testing.T) {
	seen := map[string]bool{}
	for _, machine := range bookMachines {
		for _, x := range settingsOf(t, machine).Settings {
			// Its configuration space was not recorded.
			if x.State == "differs" || x.State == "unknown" && machine != "spark-mesh-ok" {
				t.Errorf("%s: %s of %s is %s: found %q, wanted %q, %s",
					machine, x.Setting, x.Object, x.State, x.Found, x.Wanted, x.Evidence)
			}
			seen[x.Setting] = seen[x.Setting] || x.State == "ok"
		}
	}
	for _, c := range setup.Checks {
		if seen[c.ID] == (notInBook[c.ID] != "") {
			t.Errorf("%s is evaluated on a machine set up by the guides: %v, listed as not evaluated: %v",
				c.ID, seen[c.ID], notInBook[c.ID] != "")
		}
	}
}

// TestSetupOfFreshImage: each setting of the table differs on a host with a fresh image, with the command that sets it,
// where the wanted value comes from, and the evidence for one of this host; or the reason is listed.
func TestSetupOfFreshImage(t *testing.T) {
	differs := map[string]map[string]bool{} // setting → machines
	for _, machine := range slices.Concat(freshMachines, slices.Sorted(maps.Values(differsElsewhere))) {
		for _, x := range settingsOf(t, machine).Settings {
			if x.State != "differs" {
				continue
			}
			if differs[x.Setting] == nil {
				differs[x.Setting] = map[string]bool{}
			}
			differs[x.Setting][machine] = true
			if x.Remedy == "" || strings.ContainsAny(x.Remedy, "{}") || x.Source == "" || x.Wanted == "" || x.Why == "" {
				t.Errorf("%s: %s of %s: remedy %q, source %q, wanted %q, why %q",
					machine, x.Setting, x.Object, x.Remedy, x.Source, x.Wanted, x.Why)
			}
			if x.Basis == "machine" && x.Evidence == "" {
				t.Errorf("%s: %s of %s has no evidence for %q", machine, x.Setting, x.Object, x.Wanted)
			}
		}
	}
	for _, c := range setup.Checks {
		fresh := slices.ContainsFunc(freshMachines, func(m string) bool { return differs[c.ID][m] })
		elsewhere := differsElsewhere[c.ID]
		switch {
		case fresh != (elsewhere == "" && goodByDefault[c.ID] == ""):
			t.Errorf("%s differs on a fresh image: %v, other machine %q, default %q",
				c.ID, fresh, elsewhere, goodByDefault[c.ID])
		case elsewhere != "" && !differs[c.ID][elsewhere]:
			t.Errorf("%s does not differ on %s", c.ID, elsewhere)
		}
	}
}
