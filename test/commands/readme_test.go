package commands_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/test/machines"
)

// TestReadmeOfReplays compares the sample output and the quoted findings of the README with check on the recorded
// machines.
func TestReadmeOfReplays(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	must(t, err)
	readme := string(b)
	const command, exit = "$ bin/rdma_exporter check --replay=demo\n", "$ echo $?\n2\n"
	before, rest, _ := strings.Cut(readme, command)
	_, after, found := strings.Cut(rest, exit)
	t.Setenv("COLUMNS", "80")
	code, out, errs := runProgram(t, "--replay=demo", "check")
	if code != 2 || errs != "" || !found {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	machines.Golden(t, "../../../README.md", []byte(before+command+out+exit+after))
	t.Setenv("COLUMNS", "")
	quoted := regexp.MustCompile(`(?m)^\| .*\): `+"`(.*?)`.* \\| `(\\S+)` \\|$").FindAllStringSubmatch(readme, -1)
	if len(quoted) != 3 {
		t.Errorf("%d findings quoted in the table, 3 expected", len(quoted))
	}
	for _, q := range quoted {
		replay := q[2]
		if replay != "demo" {
			replay = "../../" + replay
		}
		end := strings.IndexAny(q[1], " :")
		host, finding := q[1][:end], strings.TrimLeft(q[1][end:], ": ")
		if _, out, errs := runProgram(t, "check", "--short", "--replay="+replay); !strings.HasPrefix(out, host+": ") ||
			!strings.Contains(out, " "+finding+"\n") {
			t.Errorf("check of %s does not report %q\n%s%s", q[2], q[1], out, errs)
		}
	}
}
