package netlink

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
)

// ListenerUIDs returns the users of programs that listen on a TCP port of this network namespace, on any address:
// /proc/net/tcp and tcp6, columns local_address, st (0A: LISTEN) and uid. Empty: none, or unknown.
func ListenerUIDs(f host.Files, port string) (uids []int) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
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
				uids = append(uids, n)
			}
		}
	}
	return uids
}
