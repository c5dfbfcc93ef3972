package replay

import (
	"context"
	"syscall"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/transceiver"
)

// ModuleEEPROM adds the answer to the recorded page. If a request fails after others succeeded, its bytes are missing
// in the replay.
func (r *Recorder) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	b, err := r.inner.Ethtool.ModuleEEPROM(ctx, netdev, ref)
	name := netlink.EEPROMName(netdev, ref)
	page, now := r.eeprom(name)
	if err == nil {
		page.Put(int(ref.Offset), b)
	}
	if err == nil || !now {
		r.answer(name, page.Encode(), err)
	}
	return b, err
}

// eeprom returns the recorded page, and whether this round has read part of it.
func (r *Recorder) eeprom(name string) (page *answer.EEPROM, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, now := r.now[name]
	if now = now && e.Kind == capture.File; !now {
		e = r.all[name]
	}
	page, err := answer.DecodeEEPROM(name, e.Data)
	if err != nil {
		page = &answer.EEPROM{}
	}
	return page, now
}

// ModuleEEPROM returns the recorded bytes. Bytes that were not recorded are EIO, as for a module that does not answer.
func (p *Player) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	name := netlink.EEPROMName(netdev, ref)
	b, err := p.Read(name, nil)
	if err != nil {
		return nil, err
	}
	page, err := answer.DecodeEEPROM(name, b)
	if err != nil {
		return nil, err
	}
	out := page.Get(int(ref.Offset), int(ref.Length))
	if len(out) == 0 {
		return nil, &access.Error{Op: "query", Path: name, Err: syscall.EIO}
	}
	return out, nil
}
