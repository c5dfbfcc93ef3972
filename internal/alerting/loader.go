package alerting

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

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
	key := parsedKey{string(text), ignoreUnknown, scheme}
	parsed := recent.get(key)
	if parsed == nil {
		var errs []error
		if parsed, errs = rulefmt.Parse(text, ignoreUnknown, scheme, &recent, l.logger); len(errs) > 0 {
			return parsed, errs
		}
		recent.keep(key, parsed)
	}
	l.groups = l.groups[:0]
	out := &rulefmt.RuleGroups{Groups: slices.Clone(parsed.Groups)}
	for i, g := range out.Groups {
		l.groups = append(l.groups, g.Name)
		if l.bare {
			rules := slices.Clone(g.Rules)
			for j := range rules {
				rules[j].Annotations = nil
			}
			out.Groups[i].Rules = rules
		}
	}
	return out, nil
}

// Parse parses the expression of a rule.
func (l *fsLoader) Parse(text string) (parser.Expr, error) { return recent.ParseExpr(text) }

// recent are the rule files and expressions parsed in the last 10s. The engine, the coverage and the list of metrics
// that rules read parse the same files when the program starts and when it reloads, and the library parses each
// expression twice. They are not kept, since they hold 2 MB.
var recent = parsedRules{Parser: parser.NewParser(parser.Options{})}

// ParsedKept is how long parsed rules are kept.
const ParsedKept = 10 * time.Second

type parsedKey struct {
	text          string
	ignoreUnknown bool
	scheme        model.ValidationScheme
}

// parsedRules are parsed rule files and expressions by text. Callers do not change them.
type parsedRules struct {
	parser.Parser
	mu    sync.Mutex
	files map[parsedKey]*rulefmt.RuleGroups
	exprs map[string]*ruleExpr
}

// get returns nil if a file is not known.
func (p *parsedRules) get(key parsedKey) *rulefmt.RuleGroups {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[key]
}

// keep keeps a file until ParsedKept after the first one.
func (p *parsedRules) keep(key parsedKey, file *rulefmt.RuleGroups) {
	if strings.Contains(key.text, "\n---") { // the parser logs a second document, each time
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	p.files[key] = file
}

// ParseExpr parses the expression of a rule: the result is a *ruleExpr.
func (p *parsedRules) ParseExpr(text string) (parser.Expr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.exprs[text]; known != nil {
		return known, nil
	}
	expr, err := p.Parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	p.begin()
	p.exprs[text] = &ruleExpr{expr, expr.String()}
	return p.exprs[text], nil
}

func (p *parsedRules) begin() {
	if p.files == nil {
		p.files, p.exprs = map[parsedKey]*rulefmt.RuleGroups{}, map[string]*ruleExpr{}
		time.AfterFunc(ParsedKept, p.forget)
	}
}

func (p *parsedRules) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files, p.exprs = nil, nil
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
