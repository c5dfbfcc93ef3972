//go:build e2e

package kernel

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/transceiver/dump"
	"rdma_exporter/test/program"
)

// eepromPages are those of the test driver: the lower half, then the upper halves of pages 0 to 11h.
const eepromPages = 0x12

// plug inserts a module of internal/transceiver/testdata into the cage of a device.
func (g *guest) plug(t *testing.T, device, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "internal/transceiver/testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	memory, _, err := dump.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var image [1 + eepromPages][128]byte
	for half, bytes := range memory {
		if half.Upper {
			image[1+half.Page] = *bytes
		} else {
			image[0] = *bytes
		}
	}
	var flat []byte
	for _, half := range image {
		flat = append(flat, half[:]...)
	}
	if err := os.WriteFile(filepath.Join(g.share, "module"), flat, 0o644); err != nil {
		t.Fatal(err)
	}
	g.must(t, "cat "+shareMount+"/module >/sys/kernel/debug/fakerdma/"+device+"/eeprom")
}

// shareHostTest copies the tests of the packages below internal/host to the guest: live.test, netlink.test, umad.test.
func (g *guest) shareHostTest(t *testing.T) {
	t.Helper()
	dir := cmp.Or(os.Getenv("RDMA_HOST_TEST"), filepath.Join(repository, "bin/host-e2e"))
	for _, name := range []string{"live.test", "netlink.test", "umad.test"} {
		test, err := os.ReadFile(program.Built(t, filepath.Join(dir, name), "make e2e builds it"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(g.share, name), test, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// testModule: modules in MODULE_EEPROM_GET: a CMIS module, an SFF-8636 module after a carrier change, and errors.
func testModule(t *testing.T, g *guest) {
	// A separate exporter without permanent scrapes: in an emulated machine these use up the budget of reads.
	g.must(t, "/tmp/rdma_exporter --no-alerting --transceiver.interval=5s --collector.disable-defaults --collector.transceiver --web.listen-address=:"+modulesPort+
		" >"+shareMount+"/modules.log 2>&1 & echo $! >/tmp/modules.pid")
	defer g.must(t, "kill $(cat /tmp/modules.pid)")
	modules := *g
	modules.url = g.modules
	const at = `device="mlx5_1",%snetdev="ens0f0np0",port="1"%s}`
	name := func(metric, before, after string) string {
		return "rdma_transceiver_" + metric + "{" + fmt.Sprintf(at, before, after)
	}
	state := func(s string) string { return name("state", "", fmt.Sprintf(",state=%q", s)) }
	g.plug(t, "mlx5_1", "osfp-2xdr4")
	g.flap(t)
	modules.expectWithin(t, 3*patienceOfGuest, samples{
		state("present"): 1, state("ready"): 1, name("temperature_celsius", "", ""): 60,
		name("voltage_volts", "", ""):              3.2652,
		name("receive_power_dbm", `lane="1",`, ""): 0, name("receive_power_dbm", `lane="5",`, ""): -40,
		name("temperature_threshold_celsius", `level="high_alarm",`, ""): 75, name("lane_active", `lane="5",`, ""): 0,
	})
	if out := g.must(t, "/tmp/rdma_exporter optics"); !strings.Contains(out,
		"OSFP, NVIDIA MMS4X00-NM, serial MT2238FT00123") || !strings.Contains(out, "60.0 °C") {
		t.Errorf("optics:\n%s", out)
	}
	g.plug(t, "mlx5_1", "qsfp28-sr4")
	g.flap(t)
	modules.expectWithin(t, 3*patienceOfGuest, samples{
		state("present"): 1, name("receive_power_dbm", `lane="1",`, ""): 0, name("receive_power_dbm", `lane="2",`, ""): -40,
		name("temperature_celsius", "", ""): 34.25, name("voltage_volts", "", ""): 3.3099,
		name("bias_amperes", `lane="1",`, ""):                            0.007,
		name("temperature_threshold_celsius", `level="high_alarm",`, ""): 80,
		name("voltage_threshold_volts", `level="low_alarm",`, ""):        2.97,
	})
	modules.expectGone(t, name("receive_power_dbm", `lane="5",`, ""))

	g.shareHostTest(t)
	g.must(t, "RDMA_MODULE_NETDEV=ens0f0np0 "+shareMount+"/netlink.test -test.run ByIoctlInGuest")

	const busy, io = 16, 5 // EBUSY, EIO
	g.set(t, "mlx5_1", map[string]int{"eeprom_errno": busy})
	modules.expectWithin(t, 3*patienceOfGuest, samples{state("busy"): 1})
	g.set(t, "mlx5_1", map[string]int{"eeprom_errno": io})
	modules.expectWithin(t, 3*patienceOfGuest,
		samples{state("unreadable"): 1, `rdma_scrape_quarantined_items{collector="transceiver",device="mlx5_1"}`: 1})
	g.set(t, "mlx5_1", map[string]int{"eeprom_errno": 0})
	g.flap(t)
	modules.expectWithin(t, 3*patienceOfGuest, samples{state("present"): 1})
}
