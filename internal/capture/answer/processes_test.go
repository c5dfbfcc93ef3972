package answer

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

func TestProcessesGarbled(t *testing.T) {
	for _, text := range []string{"gpus: x\n", "nonsense\n", "locked_memory: -1\n", "other: 1\n", "conf_NCCL_A: 1\n"} {
		if _, err := Decode[accel.Process]("processes/1", []byte(text)); !errors.Is(err, access.ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, env := range []map[string]string{
		{"NCCL_DEBUG": "a\nb: c"}, {"NCCL_DEBUG": "a\r\x1b[2J\u0085\x7f\x00\xff"}, {"NCCL_A\njob: slurm/1\nB": "1"},
	} {
		b := Encode(accel.Process{Env: env})
		p, err := Decode[accel.Process]("processes/1", b)
		if strings.Count(string(b), "\n") != 1 || strings.IndexFunc(string(b[:len(b)-1]), unicode.IsControl) >= 0 ||
			p.Job != "" || err != nil {
			t.Errorf("%q: %+v %v", b, p, err)
		}
	}
}

func FuzzDecodeProcess(f *testing.F) {
	f.Add([]byte("command: a\nsettings: read\nconf_NCCL_A: 1\ntopology: <system></system>\n"))
	f.Add([]byte("gpus: 0 1\nverbs: uverbs0\nnccl: 2.22.3\nenv_NCCL_DEBUG: INFO\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode[accel.Process]("processes/1", b)
		if err != nil {
			return
		}
		if _, err := Decode[accel.Process]("processes/1", Encode(p)); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	})
}
