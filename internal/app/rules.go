package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/rules"
)

type rulesConfig struct {
	set   string
	dir   string // empty: standard output
	force bool
}

func (r *rulesConfig) flags(a *kingpin.CmdClause) {
	a.Flag("set", "node: what one host's metrics suffice for; central: what needs the sight of many, beside the former.").Required().EnumVar(&r.set, "node", "central")
	a.Flag("output", "Folder to write the files into, one each; standard output, as one file, if empty.").Short('o').PlaceHolder("DIR").StringVar(&r.dir)
	a.Flag("force", "Overwrite files that differ.").BoolVar(&r.force)
}

// ruleFile is a rule file of the binary.
type ruleFile struct {
	name string // without folder
	text []byte
}

func runRules(r *rulesConfig, stdout io.Writer) (int, error) {
	set := rules.Node
	if r.set == "central" {
		set = rules.Central
	}
	fsys, names, err := set()
	if err != nil {
		return exitUsage, err
	}
	var files []ruleFile
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return exitUsage, fmt.Errorf("read embedded rules: %w", err)
		}
		files = append(files, ruleFile{path.Base(name), text})
	}
	if r.dir == "" || r.dir == "-" {
		if _, err := stdout.Write(oneFile(files)); err != nil {
			return exitUsage, fmt.Errorf("cannot print the rules: %w", err)
		}
		return exitOK, nil
	}
	if err := r.write(files); err != nil {
		return usage(fmt.Errorf("--output=%s: %w", r.dir, err))
	}
	return exitOK, nil
}

// oneFile joins files into one that Prometheus loads: the groups of all below one key, each file's comments before its own.
func oneFile(files []ruleFile) []byte {
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

// write puts the files into the folder, which is made if it is not there. Nothing is written where a file differs.
func (r *rulesConfig) write(files []ruleFile) error {
	if err := os.Mkdir(r.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return errors.Unwrap(err)
	}
	var changed []ruleFile
	var differ []string
	for _, f := range files {
		old, err := os.ReadFile(filepath.Join(r.dir, f.name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			changed = append(changed, f)
		case err != nil:
			return fmt.Errorf("%s: %w", f.name, errors.Unwrap(err))
		case !bytes.Equal(old, f.text):
			changed, differ = append(changed, f), append(differ, f.name)
		}
	}
	if len(differ) > 0 && !r.force {
		return fmt.Errorf("%s: has other content: --force overwrites it", strings.Join(differ, ", "))
	}
	for _, f := range changed {
		if err := write(filepath.Join(r.dir, f.name), f.text, nil); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}
