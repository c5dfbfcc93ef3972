//go:build !race

package capture_test

import (
	"os"
	"regexp"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/archives"
)

// TestEntriesOfMachines: what is read from the recorded machines is written again byte for byte, but for a few entries
// edited by hand.
func TestEntriesOfMachines(t *testing.T) {
	again := map[*regexp.Regexp]func(path string, b []byte) ([]byte, error){
		regexp.MustCompile(`^rdma/.*/port$`):                rewriteForm[host.RDMAPort],
		regexp.MustCompile(`^rdma/.*/stats$`):               rewriteForm[[]host.Stat],
		regexp.MustCompile(`^rdma/.*/holders$`):             rewriteForm[[]host.RDMAHolder],
		regexp.MustCompile(`^ethtool/.*/linkstate$`):        rewriteForm[host.LinkState],
		regexp.MustCompile(`^ethtool/.*/linkmodes$`):        rewriteForm[host.LinkModes],
		regexp.MustCompile(`^ethtool/.*/pause$`):            rewriteForm[host.Pause],
		regexp.MustCompile(`^ethtool/.*/fec$`):              rewriteForm[host.FEC],
		regexp.MustCompile(`^ethtool/.*/(stats|standard)$`): rewriteForm[[]host.Stat],
		regexp.MustCompile(`^devlink/health$`):              rewriteForm[[]host.HealthReporter],
		regexp.MustCompile(`^dcb/`):                         rewriteForm[dcb.Config],
		regexp.MustCompile(`^subnet/.*/link$`):              rewriteForm[host.IBLink],
		regexp.MustCompile(`^subnet/.*/agent/`):             rewriteForm[host.IBCounters],
		regexp.MustCompile(`^subnet/.*/manager/`):           rewriteForm[host.IBManager],
		regexp.MustCompile(`^subnet/.*/fec/`):               rewriteForm[host.IBFEC],
		regexp.MustCompile(`^subnet/.*/settings$`):          rewriteForm[host.IBPortSettings],
		regexp.MustCompile(`^nvml/system$`):                 rewriteForm[accel.NVML],
		regexp.MustCompile(`^nvml/gpu/`):                    rewriteForm[accel.GPU],
		regexp.MustCompile(`^processes/`):                   rewriteForm[accel.Process],
		regexp.MustCompile(`^pods$`):                        rewriteForm[[]accel.Pod],
		regexp.MustCompile(`^launchers$`):                   rewriteForm[answer.LauncherSearch],
		regexp.MustCompile(`^ebpf/trace$`):                  rewriteForm[accel.Trace],
	}
	seen, same := map[string]bool{}, 0
	archives.EachFile(t, func(t *testing.T, file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives.Parse(t, string(text)).Each(func(e *capture.Entry) {
			for pattern, rewrite := range again {
				if e.Kind != capture.File || seen[e.Path+string(e.Data)] || !pattern.MatchString(e.Path) {
					continue
				}
				seen[e.Path+string(e.Data)] = true
				b, err := rewrite(e.Path, e.Data)
				if string(b) == string(e.Data) {
					same++
				}
				if twice, again := rewrite(e.Path, b); err != nil || again != nil || string(twice) != string(b) {
					t.Errorf("%s: %v %v\n%s\nis written as\n%s\nand as\n%s", e.Path, err, again, e.Data, b, twice)
				}
			}
		})
	})
	if same < 1000 || same*100 < len(seen)*99 {
		t.Errorf("%d of %d entries are the same", same, len(seen))
	}
}

func TestFixturesAreWrittenAgainByteForByteOfMachines(t *testing.T) {
	archives.EachFile(t, func(t *testing.T, file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives.Differ(t, archives.Format(t, archives.Parse(t, string(text))), string(text))
	})
}

func rewriteForm[T any](path string, b []byte) ([]byte, error) {
	v, err := answer.Decode[T](path, b)
	return answer.Encode(v), err
}
