package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// message is a message of a kernel's source of severity warning and above.
type message struct {
	file, function, macro, format string
	tag                           string // that dev_fmt or pr_fmt of the file puts before it: "AER: "
}

// call is the begin of a call of a macro that prints (include/linux/dev_printk.h, printk.h, include/rdma/ib_verbs.h,
// and the macros of drivers above them).
var call = regexp.MustCompile(`\b((?:dev|netdev|netif|pci|pr|net|ibdev|ctrl|mlx4|mlx5_core|mlx5_ib|mlx4_ib|mlx5_cmd|en|esw|fs|sd|` +
	`mlx5e_rss|mlx5_fpga|mlx5_mr_cache|qos|mpesw|ipoib|fw_reset|irdma|efa|hns3_rl|bnxt|ionic|hclge|nvswitch|nv)_` +
	`(?:err|warn|crit|alert|emerg|log_error)(?:_rl|_ratelimited|_once|_probe)?|printk|en_print|nv_printf|NV_DEV_PRINTF|` +
	`NV_DEV_PRINTF_STATUS|NVSWITCH_PRINT|peer_err|hwrm_err|err|warn)\(`)

// function is the begin of a definition of a function.
var function = regexp.MustCompile(`(?m)^(?:[A-Za-z_][\w \t*]*?\b)?(\w+)\(`)

// literal is a string of C.
var literal = regexp.MustCompile(`"((?:[^"\\\n]|\\.)*)"`)

// tagged are the definitions of what a file puts before its messages.
var tagged = regexp.MustCompile(`(?m)^#define (dev|pr)_fmt\((\w+)\)\s+(?:"([^"%]*)" |(pr_fmt))?`)

// formatStart is the begin of the format among the arguments, after a macro for its level.
var formatStart = regexp.MustCompile(`(?:^|,)\s*((?:[A-Z_][A-Z0-9_]*\s+)?"(?s:.*))`)

// extract returns the messages of a directory of a kernel's source, or of a file.
func extract(root, dir string) (out []message, err error) {
	err = filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".c") && !strings.HasSuffix(path, ".h") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		out = append(out, extractFile(file, uncommented(data))...)
		return err
	})
	return out, err
}

var comment = regexp.MustCompile(`(?s)/\*.*?\*/`)

func uncommented(data []byte) []byte {
	return comment.ReplaceAllFunc(data, func(b []byte) []byte {
		return bytes.Repeat([]byte("\n"), bytes.Count(b, []byte("\n")))
	})
}

func extractFile(file string, data []byte) (out []message) {
	tags := map[string]string{}
	for _, m := range tagged.FindAllSubmatch(data, -1) {
		tags[string(m[1])] = string(m[3])
		if len(m[4]) > 0 {
			tags[string(m[1])] = tags["pr"]
		}
	}
	for _, at := range call.FindAllSubmatchIndex(data, -1) {
		begin := bytes.LastIndexByte(data[:at[0]], '\n') + 1
		define := bytes.HasPrefix(bytes.TrimSpace(data[begin:at[0]]), []byte("#define"))
		if define || bytes.HasSuffix(data[:begin], []byte("\\\n")) {
			continue
		}
		arguments := enclosed(data[at[1]:])
		m := message{file: file, macro: string(data[at[2]:at[3]]), function: functionAt(data[:at[0]])}
		switch {
		case strings.HasPrefix(m.macro, "pr_"):
			m.tag = tags["pr"]
		case strings.HasPrefix(m.macro, "pci_"), strings.HasPrefix(m.macro, "dev_"), strings.HasPrefix(m.macro, "ctrl_"):
			m.tag = tags["dev"]
		}
		if m.format = format(arguments); m.format == "" || !severe(m.macro, arguments) {
			continue
		}
		out = append(out, m)
	}
	return out
}

var (
	severeLevel    = regexp.MustCompile(`^\s*KERN_(EMERG|ALERT|CRIT|ERR|WARNING)\b`)
	severeArgument = regexp.MustCompile(`^[^,]*,\s*(ERROR|WARN)\b`)
)

// severe reports whether a message has severity warning or above.
func severe(macro, arguments string) bool {
	switch macro {
	case "printk", "en_print":
		return severeLevel.MatchString(arguments)
	case "nv_printf", "NV_DEV_PRINTF", "NV_DEV_PRINTF_STATUS":
		return strings.Contains(arguments, "NV_DBG_ERRORS") || strings.Contains(arguments, "NV_DBG_WARNINGS")
	case "NVSWITCH_PRINT":
		return severeArgument.MatchString(arguments)
	}
	return true
}

// enclosed returns the text up to the parenthesis that ends it.
func enclosed(data []byte) string {
	depth, quoted := 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return string(data[:i])
			}
		}
	}
	return ""
}

// format joins the literals of the first argument that begins with one.
func format(arguments string) string {
	m := formatStart.FindStringSubmatch(arguments)
	if m == nil {
		return ""
	}
	var out strings.Builder
	rest := m[1]
	for {
		at := literal.FindStringSubmatchIndex(rest)
		if at == nil || strings.ContainsAny(rest[:at[0]], ",()?") {
			return strings.TrimSpace(unescape.Replace(out.String()))
		}
		out.WriteString(rest[at[2]:at[3]])
		// A macro between literals, such as PRIx64, is the end of a conversion.
		between := rest[at[1]:]
		if strings.HasSuffix(out.String(), "%") {
			out.WriteString("x")
		}
		rest = between
	}
}

var unescape = strings.NewReplacer(`\n`, "", `\t`, "\t", `\"`, `"`, `\\`, `\`)

func functionAt(source []byte) string {
	all := function.FindAllSubmatch(source, -1)
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1][1])
}

// conversion is a conversion of printf, with those of the kernel (Documentation/core-api/printk-formats.rst).
var conversion = regexp.MustCompile(`%[-+ #0]*\d*(?:\.\d+|\.\*)?(?:hh|h|ll|l|z|j|t)?([diuxXscp%])(?:[A-Za-z]*4?)`)

// width is the width of a number that is filled with zeros.
var width = regexp.MustCompile(`^%#?0(\d+)`)

// samples returns texts that a format prints, with a word of each kind for a string.
func samples(text string) (out []string) {
	for _, word := range []string{"text", "CREATE_CQ", "eth0", "0000:5e:00.0", "mlx5_ib"} {
		out = append(out, conversion.ReplaceAllStringFunc(text, func(c string) string {
			m := conversion.FindStringSubmatch(c)
			tail := c[strings.LastIndex(c, m[1])+1:]
			switch m[1] {
			case "d", "i", "u":
				return "7" + tail
			case "x", "X":
				digits := "1f"
				if w := width.FindStringSubmatch(c); w != nil {
					n, _ := strconv.Atoi(w[1])
					digits = strings.Repeat("0", max(0, n-len(digits))) + digits
				}
				if strings.Contains(c, "#") {
					digits = "0x" + digits
				}
				return digits + tail
			case "c":
				return "a" + tail
			case "%":
				return "%" + tail
			case "p":
				return "0000:5e:00.0"
			}
			return word + tail
		}))
	}
	return out
}
