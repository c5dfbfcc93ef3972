package host

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// ListenerUID is the user that a program listens as on a TCP port of this network namespace: /proc/net/tcp and tcp6, columns
// local_address, st (0A: LISTEN) and uid. False: none listens, or it cannot be told.
func ListenerUID(f Files, port string) (uid int, ok bool) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, false
	}
	at := fmt.Sprintf(":%04X", n)
	for _, name := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		b, err := f.Lines(name, []string{at})
		if err != nil {
			continue
		}
		for line := range bytes.Lines(b) {
			field := strings.Fields(string(line))
			if len(field) < 8 || !strings.HasSuffix(field[1], at) || field[3] != "0A" {
				continue
			}
			if n, err := strconv.Atoi(field[7]); err == nil {
				return n, true
			}
		}
	}
	return 0, false
}
