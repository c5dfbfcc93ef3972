//go:build !race

package anonymise

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/archives"
)

func TestNothingOfAFixturesAddressesIsLeftOfMachines(t *testing.T) {
	archives.Each(t, func(t *testing.T, a *capture.Archive) {
		text := archives.Format(t, a)
		if a.Meta.Anonymised { // a capture of a real machine: its pseudonyms are unchanged
			Archive(a)
			archives.Differ(t, archives.Format(t, a), text)
			return
		}
		replacePIDs(a) // processes have a test of their own
		original := contentsOf(a)
		short := a.Meta.Hostname
		Archive(a)
		got := archives.Format(t, a)
		if short == Host { // of a real machine, anonymised when it was captured
			if got != text {
				t.Error("anonymising twice changes the capture")
			}
			return
		}
		if short != "" && strings.Contains(got, short) {
			t.Errorf("the host name %q remains", short)
		}
		forms := map[string]string{} // forms that must not remain → address
		for _, content := range original {
			for _, m := range addressInText.FindAllStringSubmatch(content, -1) {
				d := strings.ReplaceAll(m[1], ":", "")
				if strings.HasPrefix(d, "00000000000000000000ffff") {
					forms[":ffff:"+m[1][len(m[1])-9:len(m[1])-1]] = m[1]
				} else if tail := d[len(d)-6 : len(d)-1]; strings.Trim(tail, "0") != "" {
					forms[tail[:2]+":"+tail[2:4]+":"+tail[4:]] = m[1]
					forms[tail[:2]+":"+tail[2:]] = m[1]
				}
			}
		}
		for form := range remaining(got, forms) {
			t.Errorf("of %s, %s is left", forms[form], form)
		}
		uuids := map[string]string{} // → file
		for name, content := range original {
			for _, u := range uuidText.FindAllString(name+" "+content, -1) {
				if !uuidPseudonym.MatchString(u) {
					uuids[u] = name
				}
			}
		}
		for u := range remaining(got, uuids) {
			t.Errorf("%s: %s is left", uuids[u], u)
		}
		anonymous := withoutUUIDs(contentsOf(a))
		original = withoutUUIDs(original)
		left := 0
		for name, content := range original {
			now, there := anonymous[name]
			if _, file, _ := strings.Cut(name, " "); slices.Contains(a.Meta.LeftOut, file) {
				left++
				continue
			}
			if !there {
				t.Errorf("%s is called otherwise", name)
			}
			if path.Base(name) == "vpd" {
				if serial := vpdSerial.FindString(content); serial != "" && strings.Contains(now, serial) {
					t.Errorf("%s: %s is left", name, serial)
				}
				continue
			}
			_, file, _ := strings.Cut(name, " ")
			if networkFile().MatchString(file) {
				ipv4(file, now, func(digits string) string {
					if strings.Contains(content, digits) || !strings.HasPrefix(digits, "0a0a") {
						t.Errorf("%s: %s0/28 is left", name, digits)
					}
					return digits
				})
				continue
			}
			if file == "proc/sys/kernel/random/boot_id" {
				if !strings.HasSuffix(now, "-0000-4000-9000-000000000000\n") {
					t.Errorf("%s: %s is left", name, now)
				}
				continue
			}
			if slices.Contains(a.Meta.LeftOut, file+capture.InPart) {
				continue
			}
			if answer.IsEEPROM(file) { // the serial number of a transceiver, if it has one
				continue
			}
			if answer.IsLLDP(file) {
				for i, n := range neighbours([]byte(now)) {
					if was := neighbours([]byte(content))[i]; !strings.HasPrefix(n.SystemName, "switch-") || n.PortID != was.PortID ||
						n.Port() != was.Port() {
						t.Errorf("%s: %+v became %+v", name, was, n)
					}
				}
				continue
			}
			if file == answer.PodsPath {
				for line := range strings.Lines(now) {
					if !strings.HasPrefix(line, "namespace-") || !strings.Contains(line, "/pod-") {
						t.Errorf("%s: %q is left", name, line)
					}
				}
				continue
			}
			if answer.IsGPU(file) && content != "" { // else it does not answer
				checkAnonymousGPU(t, file, content, now)
				continue
			}
			if isKFD(file) {
				for _, m := range kfdPattern().FindAllStringSubmatch(content, -1) {
					if strings.Contains(now, m[0]+"\n") {
						t.Errorf("%s: %s is left", name, m[0])
					}
				}
				content, now = kfdPattern().ReplaceAllString(content, "$1"), kfdPattern().ReplaceAllString(now, "$1")
			}
			if file == answer.PairsPath {
				for _, peer := range peerGID().FindAllString(content, -1) {
					if strings.Contains(now, peer) {
						t.Errorf("%s: %s is left", name, peer)
					}
				}
				content, now = peerGID().ReplaceAllString(content, ""), peerGID().ReplaceAllString(now, "")
			}
			content = siteLine.ReplaceAllString(content, "") // of this site
			now = siteLine.ReplaceAllString(now, "")
			if !addressInText.MatchString(content) && !isBareID(name) && short != "" &&
				!strings.Contains(content, short) && now != content {
				t.Errorf("%s: %q became %q", name, content, now)
			}
		}
		if len(anonymous)+left != len(original) {
			t.Errorf("%d paths, %d before, %d are left out", len(anonymous), len(original), left)
		}
		if strings.Contains(text, "/gids @files") && len(forms) == 0 {
			t.Error("no address was found")
		}
	})
}

// addressInText matches MAC addresses, GUIDs and GIDs, independently of the code under test.
var addressInText = regexp.MustCompile(`(?m)(?:^|[ =/"])((?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}|(?:[0-9a-f]{4}:){3,7}[0-9a-f]{4})(?:$|["/])`)

// vpdSerial is the serial number of an NVIDIA card.
var vpdSerial = regexp.MustCompile(`MT\d{4}X\d+`)

// UUIDs and their pseudonyms, independently of the code under test.
var (
	uuidText      = regexp.MustCompile(`(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	uuidPseudonym = regexp.MustCompile(`^[0-9a-f]{8}-0000-4000-[89ab]000-0{12}$`)
)

// withoutUUIDs has one text for each UUID in paths and targets in sysfs, and in jobs.
func withoutUUIDs(contents map[string]string) map[string]string {
	out := map[string]string{}
	for name, content := range contents {
		if strings.Contains(name, " sys/") || strings.Contains(name, " processes/") {
			content = uuidText.ReplaceAllString(content, "UUID")
		}
		out[uuidText.ReplaceAllString(name, "UUID")] = content
	}
	return out
}

var siteLine = regexp.MustCompile(`(?m)^(env_NCCL_TOPO_FILE|job_name|user|container): .*\n`)

// checkAnonymousGPU: UUID and serial number have pseudonyms where they exist, and nothing else changes.
func checkAnonymousGPU(t *testing.T, name, before, after string) {
	t.Helper()
	b, err := answer.Decode[accel.GPU](name, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	a, err := answer.Decode[accel.GPU](name, []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(a.UUID, "GPU-000000") || !strings.HasPrefix(a.Serial, "SERIAL") {
		t.Errorf("%s: %s, %s is left", name, a.UUID, a.Serial)
	}
	a.UUID, a.Serial = b.UUID, b.Serial
	if b.Fabric != nil && b.Fabric.Cluster != "" {
		if !strings.HasPrefix(a.Fabric.Cluster, "000000") {
			t.Errorf("%s: %s is left", name, a.Fabric.Cluster)
		}
		a.Fabric.Cluster = b.Fabric.Cluster
	}
	if !bytes.Equal(answer.Encode(a), answer.Encode(b)) {
		t.Errorf("%s: %q became %q", name, before, after)
	}
}

// remaining returns the forms that a text has: one pass for all of a length.
func remaining(text string, forms map[string]string) map[string]bool {
	lengths, out := map[int]bool{}, map[string]bool{}
	for form := range forms {
		lengths[len(form)] = true
	}
	for n := range lengths {
		for i := range len(text) - n + 1 {
			if _, ok := forms[text[i:i+n]]; ok {
				out[text[i:i+n]] = true
			}
		}
	}
	return out
}

var peerGID = lazy.Regexp(` peer=\S+`)
