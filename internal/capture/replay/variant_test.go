package replay

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/archives"
)

func TestVariantIsNotPlayedAlone(t *testing.T) {
	a := archives.Parse(t, strings.Replace(archives.Header, "{", `{"base": "base",`, 1))
	if p, err := Play(a, time.Now()); err == nil {
		p.Close()
		t.Error("it is")
	}
}
