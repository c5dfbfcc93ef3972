package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// goldenDir holds what fires on each recorded machine, in lines "# fires: SEVERITY ALERT WHERE", below the repository.
const goldenDir = "test/machines/testdata/metrics"

const matrixHead = `# Detection matrix

<!-- Written by go run ./docs/gen from ` + goldenDir + `. -->

Alerts that fire on the recorded machines (` + "`fixtures/sysfs`" + `). The last round of each is repeated until every ` + "`for`" + ` is over.

`

// matrixPage lists the alerts of each machine.
func matrixPage(repository fs.FS) ([]byte, error) {
	entries, err := fs.ReadDir(repository, goldenDir)
	if err != nil {
		return nil, err
	}
	var machines, silent []string
	fires := map[string][]string{}
	for _, e := range entries {
		text, err := fs.ReadFile(repository, path.Join(goldenDir, e.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
		found := findings(text)
		if len(found) == 0 {
			silent = append(silent, name)
			continue
		}
		machines = append(machines, name)
		for _, f := range found {
			fires[name] = append(fires[name], f.String())
		}
	}
	b := bytes.NewBufferString(matrixHead + "## Machines\n\n")
	for _, m := range machines {
		fmt.Fprintf(b, "- %s: %s\n", m, strings.Join(fires[m], "; "))
	}
	fmt.Fprintf(b, "\n## Machines without alerts\n\n%s.\n", strings.Join(silent, ", "))
	return b.Bytes(), nil
}

type finding struct{ severity, alert, where string }

func (f finding) String() string {
	return strings.TrimSpace(f.severity + " " + f.alert + " " + f.where)
}

// findings returns the findings in a golden.
func findings(golden []byte) (out []finding) {
	s := bufio.NewScanner(bytes.NewReader(golden))
	for s.Scan() {
		text, ok := strings.CutPrefix(s.Text(), "# fires: ")
		if !ok {
			continue
		}
		var f finding
		f.severity, text, _ = strings.Cut(text, " ")
		f.alert, f.where, _ = strings.Cut(text, " ")
		out = append(out, f)
	}
	return out
}
