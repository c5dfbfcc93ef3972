package infiniband

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// slowFiles delays each file of one device.
type slowFiles struct {
	host.Files
	device string
	each   time.Duration

	mu    sync.Mutex
	reads map[string]int // by name of the file
}

func (s *slowFiles) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if strings.HasPrefix(dir, sysfs.ClassDir+"/"+s.device) {
		time.Sleep(s.each)
		s.mu.Lock()
		s.reads[name]++
		s.mu.Unlock()
	}
	return s.Files.ReadIn(dir, name, buf)
}

// portTree returns a device with one InfiniBand port.
func portTree(device string) string {
	dir := "-- " + sysfs.ClassDir + "/" + device + "/"
	var b strings.Builder
	for name, text := range map[string]string{
		"node_type": "1: CA", "node_guid": "b83f:d203:0050:a1c0", "parent": "", "ports/1/state": "1: DOWN",
		"ports/1/phys_state": "2: Polling", "ports/1/link_layer": "InfiniBand", "ports/1/lid": "0x11",
		"ports/1/sm_lid": "0x1", "ports/1/lid_mask_count": "0", "ports/1/cap_mask": "0x1", "ports/1/gids/0": "fe80",
		"ports/1/gid_attrs/types/0": "IB/RoCE v1", "ports/1/pkeys/0": "0xffff",
	} {
		fmt.Fprintf(&b, "%s%s --\n%s\n", dir, name, text)
	}
	return b.String()
}

// TestSlowDeviceKeepsItsBudget: slow facts of a device whose files take 100 ms each are read less often: all its reads
// stay below 1% of the time plus those of its state; those of another device are read each minute.
func TestSlowDeviceKeepsItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := played.Machine(t, portTree("mlx5_0")+portTree("mlx5_1"))
		slow := &slowFiles{Files: h.Files, device: "mlx5_0", each: 100 * time.Millisecond, reads: map[string]int{}}
		quick := &slowFiles{Files: slow, device: "mlx5_1", reads: map[string]int{}}
		h.Files, h.Now, h.Budget = quick, time.Now, access.NewBudget(time.Now)
		c := New(shared.NewState(shared.Options{}))
		const hours, interval = 4, 30 * time.Second
		start := time.Now()
		var last snapshot.Node
		for time.Since(start) < hours*time.Hour {
			begun := time.Now()
			last = snapshot.Node{}
			done := make(chan error)
			go c.Read(context.WithoutCancel(t.Context()), h, &last, func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			time.Sleep(interval - time.Since(begun))
		}
		took := h.Budget.Spent("mlx5_0")[0].Total
		rounds := int(time.Since(start) / interval)
		if share := (took - 2*time.Second).Seconds() / time.Since(start).Seconds(); share > 0.0105 || share < 0.009 {
			t.Errorf("reads take %.2f %% of the time", 100*share)
		}
		if n := slow.reads["state"]; n != rounds {
			t.Errorf("the state is read %d times in %d rounds", n, rounds)
		}
		if n, each := slow.reads["link_layer"], quick.reads["link_layer"]; n < 2 || n > each/2 || each < rounds/2-2 {
			t.Errorf("slow facts are read %d times, those of the other device %d times in %d rounds", n, each, rounds)
		}
		if h.Budget.Spent("mlx5_1")[0].Over {
			t.Error("the other device is over its budget")
		}
		for _, d := range last.InfiniBand.Devices {
			if p := d.Ports[0]; p.LinkLayer != "InfiniBand" || collectortest.Value(p.LID) != uint64(17) || p.GIDs["ib"] != 1 ||
				collectortest.Value(p.PKeys) != uint64(1) {
				t.Errorf("%s has lost its last values: %+v", d.Name, p)
			}
		}
	})
}
