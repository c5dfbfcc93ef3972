package cli

import (
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/promslog"
)

// logPlace is the time and the place of a line.
var logPlace = regexp.MustCompile(`^({?)"?time"?.*logs_test\.go:[0-9]+"?[ ,]`)

// TestPlainLog: what others have named is text in each format and place of the log. What is plain stays.
func TestPlainLog(t *testing.T) {
	const hostile = "é\x1b[8m\u202e\u009b1m"
	type named struct{ Name string }
	for format, want := range map[string]string{
		"logfmt": `msg=é□[8m□□1m before=é□[8m□□1m n=1 é□[8m□□1m.s=é□[8m□□1m ` +
			`é□[8m□□1m.err="a; é□[8m□□1m" é□[8m□□1m.any={Name:é□[8m□□1m} é□[8m□□1m.list=[é□[8m□□1m] ` +
			`é□[8m□□1m.in.x=é□[8m□□1m é□[8m□□1m.nil=<nil>` + "\n",
		"json": `"msg":"é□[8m□□1m","before":"é□[8m□□1m","n":1,"é□[8m□□1m":{"s":"é□[8m□□1m",` +
			`"err":"a; é□[8m□□1m","any":{"Name":"é□[8m□□1m"},"list":["é□[8m□□1m"],"in":{"x":"é□[8m□□1m"},"nil":null}}` + "\n",
	} {
		var out strings.Builder
		c := &promslog.Config{Writer: &out, Format: promslog.NewFormat()}
		must(t, c.Format.Set(format))
		log := slog.New(plainLog{promslog.New(c).Handler()}).With("before", hostile, "n", 1).WithGroup(hostile)
		log.Info(hostile, "s", hostile, "err", errors.Join(errors.New("a"), errors.New(hostile)), "any", named{hostile},
			"list", []string{hostile}, slog.Group("in", "x", hostile), "nil", nil)
		got := logPlace.ReplaceAllString(out.String(), "")
		if got != want {
			t.Errorf("%s: %s\nwant %s", format, got, want)
		}
	}
}
