package cli

import (
	"context"
	"log/slog"
	"strings"

	"rdma_exporter/internal/words"
)

// atLeastWarn lets warnings and errors through.
type atLeastWarn struct{ slog.Handler }

func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// plainLog writes texts as one line, without what a terminal would interpret. JSON escapes only what is below 0x20, and
// those who read it print what is decoded.
type plainLog struct{ slog.Handler }

func (h plainLog) Handle(ctx context.Context, r slog.Record) error {
	p := slog.NewRecord(r.Time, r.Level, logText(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		p.AddAttrs(plainAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, p)
}

func (h plainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return plainLog{h.Handler.WithAttrs(plainAttrs(attrs))}
}

func (h plainLog) WithGroup(name string) slog.Handler {
	return plainLog{h.Handler.WithGroup(logText(name))}
}

// logText returns a text for the log on one line. Line breaks come from joined errors, the stack of a panic, or foreign
// text.
func logText(s string) string { return words.Plain(strings.ReplaceAll(s, "\n", "; ")) }

func plainAttrs(attrs []slog.Attr) (out []slog.Attr) {
	for _, a := range attrs {
		out = append(out, plainAttr(a))
	}
	return out
}

func plainAttr(a slog.Attr) slog.Attr {
	a.Key, a.Value = logText(a.Key), a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(logText(a.Value.String()))
	case slog.KindGroup:
		a.Value = slog.GroupValue(plainAttrs(a.Value.Group())...)
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(logText(err.Error()))
		} else {
			a.Value = slog.AnyValue(words.AllForeign(a.Value.Any()))
		}
	default: // numbers and times
	}
	return a
}
