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

// fsLoader reads rule files from a file system, so that the embedded ones need no copy on disk.
type fsLoader struct {
	files  fs.FS
	parser parser.Parser
	logger *slog.Logger
}

func (l *fsLoader) Load(name string, ignoreUnknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	text, err := fs.ReadFile(l.files, name)
	if err != nil {
		return nil, []error{fmt.Errorf("read rules: %w", err)}
	}
	return rulefmt.Parse(text, ignoreUnknown, scheme, l.parser, l.logger)
}

func (l *fsLoader) Parse(query string) (parser.Expr, error) { return l.parser.ParseExpr(query) }

// groupNames lists the groups of a file that has been loaded without error, in the order of its text.
func groupNames(files fs.FS, name string) ([]string, error) {
	l := fsLoader{files: files, parser: parser.NewParser(parser.Options{}), logger: slog.New(slog.DiscardHandler)}
	parsed, errs := l.Load(name, false, model.LegacyValidation)
	if len(errs) > 0 {
		return nil, fmt.Errorf("read groups of %s: %w", name, errs[0])
	}
	names := make([]string, 0, len(parsed.Groups))
	for _, g := range parsed.Groups {
		names = append(names, g.Name)
	}
	return names, nil
}

// quietHandler keeps the libraries' progress reports (each block written, each segment replayed) for debugging.
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
