package alerting

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// fsLoader reads rule files from a file system, so that embedded files need no copy on disk.
type fsLoader struct {
	files  fs.FS
	parser parser.Parser
	logger *slog.Logger
	bare   bool     // omit annotations
	groups []string // group names of the last loaded file, in the order of its text
}

func (l *fsLoader) Load(name string, ignoreUnknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	text, err := fs.ReadFile(l.files, name)
	if err != nil {
		return nil, []error{fmt.Errorf("read rules: %w", err)}
	}
	parsed, errs := rulefmt.Parse(text, ignoreUnknown, scheme, l.parser, l.logger)
	l.groups = l.groups[:0]
	if parsed != nil {
		for _, g := range parsed.Groups {
			l.groups = append(l.groups, g.Name)
			for i := range g.Rules {
				if l.bare {
					g.Rules[i].Annotations = nil
				}
			}
		}
	}
	return parsed, errs
}

func (l *fsLoader) Parse(query string) (parser.Expr, error) { return l.parser.ParseExpr(query) }

// quietHandler logs the libraries' progress reports (blocks written, segments replayed) at debug level.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if level < slog.LevelWarn && !h.Handler.Enabled(ctx, slog.LevelDebug) {
		return false
	}
	return h.Handler.Enabled(ctx, level)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
