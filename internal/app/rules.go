package app

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/rules"
)

type rulesConfig struct {
	set   string
	dir   string // empty: standard output
	force bool
	books runbookURL
}

func (r *rulesConfig) flags(a *kingpin.CmdClause) {
	a.Flag("set", "node: what one host's metrics suffice for; central: what needs the sight of many, beside the former; compat: our series under the names of node_exporter.").Required().PlaceHolder("node|central|compat").EnumVar(&r.set, "node", "central", "compat")
	a.Flag("output", "Folder to write the files into, one each; standard output, as one file, if empty.").Short('o').PlaceHolder("DIR").StringVar(&r.dir)
	a.Flag("force", "Overwrite files that differ.").BoolVar(&r.force)
	r.books.flag(a, "Where runbooks are read, for the annotation runbook_url, which is left out without it")
}

func runRules(r *rulesConfig, stdout io.Writer) (int, error) {
	if err := r.books.check(); err != nil {
		return usage(err)
	}
	set := map[string]func() (fs.FS, []string, error){"node": rules.Node, "central": rules.Central, "compat": rules.Compat}[r.set]
	fsys, names, err := set()
	if err != nil {
		return exitUsage, err
	}
	files, err := readEmbedded(fsys, names)
	if err != nil {
		return exitUsage, err
	}
	for i := range files {
		files[i].text = r.books.inRules(files[i].text)
	}
	if r.dir == "" || r.dir == "-" {
		if _, err := stdout.Write(oneFile(files)); err != nil {
			return exitUsage, fmt.Errorf("cannot print the rules: %w", err)
		}
		return exitOK, nil
	}
	if err := writeEmbedded(r.dir, r.force, files); err != nil {
		return usage(fmt.Errorf("--output=%s: %w", r.dir, err))
	}
	return exitOK, nil
}

// oneFile joins files into one that Prometheus loads: the groups of all below one key, each file's comments before its own.
func oneFile(files []embedded) []byte {
	const key = "groups:\n"
	b := bytes.NewBufferString(key)
	for _, f := range files {
		head, groups, _ := strings.Cut(string(f.text), "\n"+key)
		fmt.Fprintf(b, "\n  # %s\n  #\n", f.name)
		for line := range strings.Lines(head + "\n") {
			b.WriteString("  " + line)
		}
		b.WriteString(groups)
	}
	return b.Bytes()
}
