package gdr

import (
	"slices"
	"testing"

	"rdma_exporter/internal/nccl"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]version{
		"6.12.48+deb13-amd64": {6, 12, 48}, "5.14.0-503.el9": {5, 14, 0}, "2.22.3": {2, 22, 3}, "7.3-rc1": {7, 3}, "": nil,
		"x": nil, "6.x": {6},
	} {
		if got := parseVersion(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestAttachments(t *testing.T) {
	open, closed := hopper(), hopper()
	closed.Driver.Open = new(false)
	for _, c := range []struct {
		name   string
		m      *Machine
		seen   *uint64
		driver string
		env    nccl.Env
		want   string
	}{
		{"they may be in use", open, nil, "mlx5_core", nil, "not known"},
		{"seen", open, new(uint64(3)), "mlx5_core", nil, "some"},
		{"seen, of others, since it is switched off", open, new(uint64(3)), "mlx5_core", nccl.Env{"NCCL_DMABUF_ENABLE": "0"}, "none"},
		{"switched off", open, nil, "mlx5_core", nccl.Env{"NCCL_DMABUF_ENABLE": "0"}, "none"},
		{"the proprietary driver", closed, nil, "mlx5_core", nil, "none"},
		{"a NIC that cannot", open, nil, "mlx4_core", nil, "none"},
		{"a NIC of which it is not known", open, nil, "vmw_pvrdma", nil, "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.m.Attachments(c.seen, c.driver, c.env)
			said := "not known"
			if got != nil {
				said = map[bool]string{true: "none", false: "some"}[*got == 0]
			}
			if said != c.want {
				t.Errorf("%s, want %s", said, c.want)
			}
		})
	}
}
