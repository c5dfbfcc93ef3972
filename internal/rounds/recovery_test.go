package rounds

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// TestReadWorksAgain: an item has recovered only if it was read. A collection that failed, is stuck or pending, or was
// discarded proves no recovery. The errors of a removed device end without a message that its reads work again.
func TestReadWorksAgain(t *testing.T) {
	invalid := snapshot.Issue{Device: "mlx5_0", Reason: string(access.Invalid), Err: errors.New("read state")}
	stuck := snapshot.Issue{Device: "mlx5_0", Reason: string(access.Stuck), Err: errors.New("no answer")}
	class := snapshot.Issue{Reason: string(access.IO), Err: errors.New("read class")}
	of := func(reads []snapshot.DeviceRead, issues ...snapshot.Issue) *result {
		return &result{node: snapshot.Node{Devices: reads, Issues: issues}}
	}
	both := []snapshot.DeviceRead{{Device: "mlx5_0"}, {Device: "mlx5_1"}}
	other, none := both[1:], []snapshot.DeviceRead(nil)
	mlx5 := func(d snapshot.DeviceRead) []snapshot.DeviceRead {
		d.Device = "mlx5_0"
		return []snapshot.DeviceRead{d, both[1]}
	}
	failed := &result{err: errors.New("no class")}
	pending := &result{node: snapshot.Node{Pending: []string{"eeprom"}, Devices: both}}
	const (
		begins   = `WARN read failed collector=c device=mlx5_0 reason=invalid first="read state"`
		works    = `INFO read works again collector=c device=mlx5_0 reason=invalid`
		gone     = `INFO read error ends: the device is not listed any more collector=c device=mlx5_0 reason=invalid`
		hangs    = `WARN read failed collector=c device=mlx5_0 reason=stuck first="no answer"`
		answers  = `INFO read works again collector=c device=mlx5_0 reason=stuck`
		whole    = `WARN read failed collector=c device="" reason=failed first="no class"`
		asWhole  = `INFO read works again collector=c device="" reason=failed`
		listFail = `WARN read failed collector=c device="" reason=io first="read class"`
		lists    = `INFO read works again collector=c device="" reason=io`
	)
	for name, c := range map[string]struct {
		rounds []*result
		want   []string // log
		left   []fault
	}{
		"read":           {[]*result{of(both, invalid), of(both)}, []string{begins, works}, nil},
		"lasts":          {[]*result{of(both, invalid), of(both, invalid)}, []string{begins}, []fault{{"c", "mlx5_0", "invalid"}}},
		"without a list": {[]*result{of(none, invalid), of(none)}, []string{begins, works}, nil},
		"of the host":    {[]*result{of(none, class), of(none)}, []string{listFail, lists}, nil},
		"of the host, whole": {
			[]*result{of(none, class), failed, of(none)}, []string{listFail, whole, asWhole, lists}, nil,
		},
		"whole": {
			[]*result{of(both, invalid), failed},
			[]string{begins, whole},
			[]fault{{"c", "", "failed"}, {"c", "mlx5_0", "invalid"}},
		},
		"whole, then read": {[]*result{of(both, invalid), failed, of(both)}, []string{begins, whole, asWhole, works}, nil},
		"whole, then lasts": {
			[]*result{of(both, invalid), failed, of(both, invalid)},
			[]string{begins, whole, asWhole},
			[]fault{{"c", "mlx5_0", "invalid"}},
		},
		"stuck": {
			[]*result{of(both, invalid), of(mlx5(snapshot.DeviceRead{Stuck: true}), stuck)},
			[]string{begins, hangs},
			[]fault{{"c", "mlx5_0", "invalid"}, {"c", "mlx5_0", "stuck"}},
		},
		"stuck, then read": {
			[]*result{of(both, invalid), of(mlx5(snapshot.DeviceRead{Stuck: true}), stuck), of(both)},
			[]string{begins, hangs, works, answers},
			nil,
		},
		"in quarantine": {
			[]*result{of(both, invalid), of(mlx5(snapshot.DeviceRead{Quarantined: 1}))},
			[]string{begins},
			[]fault{{"c", "mlx5_0", "invalid"}},
		},
		"discarded": {
			[]*result{of(both, invalid), of(mlx5(snapshot.DeviceRead{Discarded: true}))},
			[]string{begins},
			[]fault{{"c", "mlx5_0", "invalid"}},
		},
		"pending":           {[]*result{of(both, invalid), pending, of(both)}, []string{begins, works}, nil},
		"pending still":     {[]*result{of(both, invalid), pending}, []string{begins}, []fault{{"c", "mlx5_0", "invalid"}}},
		"gone":              {[]*result{of(both, invalid), of(other)}, []string{begins, gone}, nil},
		"gone, the last":    {[]*result{of(both, invalid), of(none)}, []string{begins, gone}, nil},
		"gone and returned": {[]*result{of(both, invalid), of(other), of(both)}, []string{begins, gone}, nil},
		"gone, unread":      {[]*result{of(both, invalid), failed, of(other)}, []string{begins, whole, asWhole, gone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			f := newFaults(slog.New(slog.NewTextHandler(&log, nil)))
			for _, res := range c.rounds {
				f.add("c", res, nil)
			}
			if got := plainLog(log.String()); !slices.Equal(got, c.want) {
				t.Errorf("log:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if got := sortedFaults(f.lasting["c"]); !slices.Equal(got, c.left) {
				t.Errorf("left %v, want %v", got, c.left)
			}
		})
	}
}

// plainLog returns the lines of a log without times and without the keys of level and message.
func plainLog(log string) (out []string) {
	for line := range strings.Lines(log) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " level=")
		level, line, _ := strings.Cut(line, ` msg="`)
		message, rest, _ := strings.Cut(line, `"`)
		out = append(out, level+" "+message+rest)
	}
	return out
}

// TestDroppedLasts: the fault of a dropped sample lasts, since the sample may be of a stuck device.
func TestDroppedLasts(t *testing.T) {
	var log bytes.Buffer
	f := newFaults(slog.New(slog.NewTextHandler(&log, nil)))
	read := []snapshot.DeviceRead{{Device: "mlx5_0"}}
	f.add("c", &result{node: snapshot.Node{Devices: read}}, map[string]int{"duplicate": 1})
	f.add("c", &result{node: snapshot.Node{Devices: []snapshot.DeviceRead{{Device: "mlx5_0", Stuck: true}}}}, nil)
	f.add("c", &result{node: snapshot.Node{Devices: read}}, nil)
	want := []string{
		`WARN read failed collector=c device="" reason=duplicate first="1 sample dropped: another sample has the same name and labels"`,
		`INFO read works again collector=c device="" reason=duplicate`,
	}
	if got := plainLog(log.String()); !slices.Equal(got, want) || f.total[fault{"c", "", "duplicate"}] != 1 {
		t.Errorf("log:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
