//go:build gpu

package gpu

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// smiGPU is the output of nvidia-smi -q -x about a GPU (texts by path below <gpu>), and of nvidia-smi nvlink about its
// links.
type smiGPU map[string]string

// smi runs nvidia-smi, and returns its GPUs and the texts above them.
func smi(t *testing.T) (gpus []smiGPU, host map[string]string, raw []byte) {
	t.Helper()
	raw = command(t, "nvidia-smi", "-q", "-x")
	host = map[string]string{}
	d := xml.NewDecoder(bytes.NewReader(raw))
	d.Strict = false
	var path []string
	var gpu smiGPU
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return gpus, host, raw
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			path = append(path, x.Name.Local)
			if len(path) == 2 && x.Name.Local == "gpu" {
				gpu = smiGPU{}
				gpus = append(gpus, gpu)
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			text := strings.TrimSpace(string(x))
			switch {
			case text == "":
			case len(path) > 2 && path[1] == "gpu":
				gpu[strings.Join(path[2:], "/")] = text
			case len(path) == 2:
				host[path[1]] = text
			}
		}
	}
}

var number = regexp.MustCompile(`^-?[0-9]+(?:\.[0-9]+)?`)

// figure returns the number at the start of a text, in a base unit; false for N/A and similar.
func (g smiGPU) figure(path string) (float64, bool) {
	text, ok := g[path]
	if !ok {
		return 0, false
	}
	switch text {
	case "No", "Not Active", "None":
		return 0, true
	case "Yes", "Active":
		return 1, true
	}
	n := number.FindString(text)
	if n == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return 0, false
	}
	switch strings.TrimSpace(text[len(n):]) {
	case "MiB":
		v *= 1 << 20
	case "%":
		v /= 100
	}
	return v, true
}

// first returns the figure of the first existing path: names differ between versions.
func (g smiGPU) first(paths ...string) (float64, string, bool) {
	for _, p := range paths {
		if v, ok := g.figure(p); ok {
			return v, p, true
		}
	}
	return 0, paths[0], false
}

// nvlinks counts the links of a GPU and those that are up, by nvidia-smi nvlink -s.
func nvlinks(t *testing.T, uuid string) (links, up int) {
	t.Helper()
	for line := range strings.Lines(string(command(t, "nvidia-smi", "nvlink", "-s", "-i", uuid))) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "Link ") {
			continue
		}
		links++
		if !strings.Contains(line, "inactive") && !strings.Contains(line, "N/A") {
			up++
		}
	}
	return links, up
}

// nvlinkErrors sums the errors of the links of a GPU by the names of nvidia-smi nvlink -e.
func nvlinkErrors(t *testing.T, uuid string) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for line := range strings.Lines(string(command(t, "nvidia-smi", "nvlink", "-e", "-i", uuid))) {
		parts := strings.Split(strings.TrimSpace(line), ": ")
		if len(parts) != 3 || !strings.HasPrefix(parts[0], "Link ") {
			continue
		}
		if n, err := strconv.ParseFloat(parts[2], 64); err == nil {
			sums[parts[1]] += n
		}
	}
	return sums
}
