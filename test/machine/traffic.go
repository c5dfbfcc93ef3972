package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Traffic is the traffic of the ports of a tree.
type Traffic struct {
	counters []counter
}

// counter is a file of a port.
type counter struct {
	file  string
	value uint64
	by    uint64 // per step
}

// moves are the counters that increase on a healthy port in use. Error counters stay constant, otherwise the machine
// would have permanent faults.
var moves = regexp.MustCompile(`/(counters/.*(data|packets)|hw_counters/rx_(read|write)_requests)$`)

// NewTraffic finds the counters to increase in a tree.
func NewTraffic(dir string) (*Traffic, error) {
	x := &Traffic{}
	return x, filepath.WalkDir(filepath.Join(dir, "sys/devices"), func(file string, _ os.DirEntry, err error) error {
		if err != nil || !moves.MatchString(file) {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		v, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		x.counters = append(x.counters, counter{file, v, uint64(1000 * (1 + len(x.counters)%7))})
		return nil
	})
}

// Flow increases all counters. Those of removed devices are skipped.
func (x *Traffic) Flow() error {
	for i := range x.counters {
		c := &x.counters[i]
		c.value += c.by
		if err := Overwrite(c.file, strconv.FormatUint(c.value, 10)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Overwrite replaces the content of a file in place, like the kernel: inode and directory are unchanged.
func Overwrite(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(line+"\n"), 0)
	if err == nil {
		err = f.Truncate(int64(len(line) + 1))
	}
	return errors.Join(err, f.Close())
}
