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
	logger *slog.Logger
	bare   bool     // omit annotations
	groups []string // group names of the last loaded file, in the order of its text
}

func (l *fsLoader) Load(name string, ignoreUnknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	text, err := fs.ReadFile(l.files, name)
	if err != nil {
		return nil, []error{fmt.Errorf("read rules: %w", err)}
	}
	parsed, errs := rulefmt.Parse(text, ignoreUnknown, scheme, expressions, l.logger)
	if len(errs) > 0 {
		return parsed, errs
	}
	l.groups = l.groups[:0]
	for _, g := range parsed.Groups {
		l.groups = append(l.groups, g.Name)
		if l.bare {
			for j := range g.Rules {
				g.Rules[j].Annotations = nil
			}
		}
	}
	return parsed, nil
}

// Parse parses the expression of a rule.
func (l *fsLoader) Parse(text string) (parser.Expr, error) { return expressions.ParseExpr(text) }

// expressions parses the expressions of rules.
var expressions = exprParser{parser.NewParser(parser.Options{})}

type exprParser struct{ parser.Parser }

// ParseExpr parses the expression of a rule: the result is a *ruleExpr.
func (p exprParser) ParseExpr(text string) (parser.Expr, error) {
	expr, err := p.Parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return &ruleExpr{expr, expr.String()}, nil
}

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
