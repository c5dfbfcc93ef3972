package pci

import (
	"strconv"
	"strings"
)

// ParseAER parses the total in aer_dev_correctable, aer_dev_nonfatal or aer_dev_fatal: lines NAME COUNT, the last of
// which is TOTAL_ERR_COR, TOTAL_ERR_NONFATAL or TOTAL_ERR_FATAL (drivers/pci/pcie/aer.c).
func ParseAER(text string) (uint64, bool) {
	for line := range strings.Lines(text) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "TOTAL_ERR_") {
			n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
