//go:build bench

package bench

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// floor returns the lower bound of an exporter in Go: the files of a list are opened once, and each is read with one
// pread per request. The answer is their content.
func floor(list, address string) int {
	names, err := os.ReadFile(list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		return 1
	}
	var files []int
	for name := range strings.Lines(string(names)) {
		f, err := unix.Open(strings.TrimSuffix(name, "\n"), unix.O_RDONLY, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
			return 1
		}
		files = append(files, f)
	}
	var answer []byte // there is one client
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		answer = answer[:0]
		for _, f := range files {
			n := len(answer)
			if cap(answer)-n < 4096 {
				answer = append(answer, make([]byte, 64<<10)...)[:n]
			}
			read, err := unix.Pread(f, answer[n:n+4096], 0)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			answer = answer[:n+read]
		}
		_, _ = w.Write(answer) // the client has disconnected
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(address, nil))
	return 1
}
