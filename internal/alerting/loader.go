package alerting

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
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
	key := parsedKey{string(text), ignoreUnknown, scheme}
	parsed := recent.get(key)
	if parsed == nil {
		var errs []error
		if parsed, errs = rulefmt.Parse(text, ignoreUnknown, scheme, l.parser, l.logger); len(errs) > 0 {
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

// recent are the rule files parsed in the last 10s. The engine, the coverage and the list of metrics that rules read parse the same files
// when the program starts and when it reloads. They are not kept, since they hold 2 MB.
var recent parsedFiles

const (
	recentTime = 10 * time.Second
	// returnTime is when memory is returned to the system after the rules were read: that takes some 10 MiB, which a process without rounds
	// may not need again.
	returnTime = time.Minute
)

type parsedKey struct {
	text          string
	ignoreUnknown bool
	scheme        model.ValidationScheme
}

// parsedFiles are parsed rule files by text. Callers do not change them.
type parsedFiles struct {
	mu    sync.Mutex
	files map[parsedKey]*rulefmt.RuleGroups
}

// get returns nil if a file is not known.
func (p *parsedFiles) get(key parsedKey) *rulefmt.RuleGroups {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[key]
}

// keep keeps a file until recentTime after the first one.
func (p *parsedFiles) keep(key parsedKey, file *rulefmt.RuleGroups) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(key.text, "\n---") { // the parser logs a second document, each time
		return
	}
	if p.files == nil {
		p.files = map[parsedKey]*rulefmt.RuleGroups{}
		time.AfterFunc(recentTime, p.forget)
		time.AfterFunc(returnTime, debug.FreeOSMemory)
	}
	p.files[key] = file
}

// forget forgets all files.
func (p *parsedFiles) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files = nil
}

// Parse parses the expression of a rule.
func (l *fsLoader) Parse(query string) (parser.Expr, error) {
	expr, err := l.parser.ParseExpr(query)
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
