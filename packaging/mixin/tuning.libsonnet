// The changes of `rdma_exporter rules --tune.*`, for rules that were parsed. rules/thresholds.json is the table of thresholds.
local thresholds = std.parseJson(importstr '../../rules/thresholds.json');

local nameOf(rule) = if std.objectHas(rule, 'alert') then rule.alert else rule.record;

local isWord(c) = std.length(std.findSubstr(c, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_')) > 0;

// texts applies f to the expression and the annotations of a rule.
local texts(rule, f) = rule {
  expr: f(rule.expr),
  [if std.objectHas(rule, 'annotations') then 'annotations']: std.mapWithKey(function(_, text) f(text), rule.annotations),
};

// value is a threshold's value as the rules have it.
local value(threshold, given) =
  local text = std.toString(given);
  local number = if std.endsWith(text, '%') then std.parseJson(std.rstripChars(text, '%')) / 100 else std.parseJson(text);
  if threshold.unit == 'duration' then (
    assert isWord(text[0]) && std.length(std.findSubstr(text[std.length(text) - 1], 'dhms')) == 1 : '%s: %s is no duration such as 2m' % [threshold.name, text];
    text
  ) else (
    assert threshold.unit != 'count' || number >= 1 && number == std.floor(number) : '%s: %s is no whole number, 1 or more' % [threshold.name, text];
    assert threshold.unit != 'ratio' || number > 0 && number <= 1 : '%s: %s is not above 0 and at most 1' % [threshold.name, text];
    '%.6g' % number
  );

// place is the text of a place with a value: {} the value, {%} a percentage, {-1} the value less 1.
local place(threshold, text, value) =
  local plain = std.strReplace(text, '{}', value);
  if threshold.unit == 'duration' then plain
  else std.strReplace(std.strReplace(plain, '{%}', '%.6g%%' % (std.parseJson(value) * 100)), '{-1}', '%.6g' % (std.parseJson(value) - 1));

// unquoted is the value of a line like limit: "50%".
local unquoted(line) = std.stripChars(line[std.length('limit: '):], '"');

local setThreshold(threshold, given) =
  local new = value(threshold, given);
  function(rule) std.foldl(
    function(rule, p)
      if p.rule != nameOf(rule) then rule
      else if std.startsWith(p.text, 'limit: ') then
        local old = unquoted(place(threshold, p.text, threshold.default));
        rule { [if std.get(std.get(rule, 'annotations', {}), 'limit') == old then 'annotations']+: { limit: unquoted(place(threshold, p.text, new)) } }
      else if p.text == 'for: {}' then rule { [if std.get(rule, 'for') == threshold.default then 'for']: new }
      else texts(rule, function(text) std.strReplace(text, place(threshold, p.text, threshold.default), place(threshold, p.text, new))),
    threshold.places,
    rule
  );

// readShipped makes what reads the severity of an alert read its shipped one.
local readShipped(alerts) =
  local reader(piece) =
    local selector = if std.startsWith(piece, '{') || std.startsWith(piece, '_FOR_STATE{') then std.splitLimit(piece, '}', 1)[0] else '';
    local names = [a for a in alerts if std.length(std.findSubstr('alertname="%s"' % a, selector) + std.findSubstr("alertname='%s'" % a, selector)) > 0];
    if names == [] then piece
    else std.strReplace(std.strReplace(selector, ',severity=', ',default_severity='), ',severity!', ',default_severity!') + piece[std.length(selector):];
  function(text)
    local pieces = std.split(text, 'ALERTS');
    std.join('ALERTS', [pieces[0]] + std.map(reader, pieces[1:]));

local setLabels(config) = function(rule)
  local changed = std.set([std.split(key, ':')[0] for key in std.objectFields(config.severities)]);
  local shipped = rule.labels.severity;
  local severity = std.get(config.severities, rule.alert + ':' + shipped, std.get(config.severities, rule.alert, shipped));
  if !std.objectHas(rule, 'alert') then rule
  else rule {
    labels: config.labels + rule.labels + (
      if !std.setMember(rule.alert, changed) then {}
      else { default_severity: shipped, severity: severity, [if severity == 'info' then 'drain']: 'no' }
    ),
  };

// select puts the matchers into the selectors of the exporter's series and of up.
local select(selector) =
  local atWord(before) = before != '' && (isWord(before[std.length(before) - 1]) || std.length(std.findSubstr(before[std.length(before) - 1], ':"\'')) > 0);
  local wordLength(s) = local head = std.substr(s, 0, 100);  // longer than any name
                        std.length(head) - std.length(std.lstripChars(head, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_'));
  local byName(prefix, expr) =
    local pieces = std.split(expr, prefix);
    pieces[0] + std.join('', std.mapWithIndex(
      function(i, piece)
        local n = wordLength(piece);
        local rest = piece[n:];
        prefix + piece[:n] + (
          if atWord(pieces[i]) || prefix == 'up' && !std.startsWith(piece, '{') then rest
          else if std.startsWith(rest, '{job') && std.startsWith(selector, 'job') && prefix == 'up' then '{' + selector + rest[std.findSubstr('}', rest)[0]:]
          else if std.startsWith(rest, '{') then '{' + selector + ',' + rest[1:]
          else '{' + selector + '}' + rest
        ),
      pieces[1:]
    ));
  function(rule) if selector == '' then rule else rule { expr: byName('up', byName('rdma_', rule.expr)) };

local setRunbook(base) = function(rule)
  if !std.objectHas(rule, 'alert') then rule
  else rule { annotations: { [k]: rule.annotations[k] for k in std.objectFields(rule.annotations) if k != 'runbook_url' } + (
    if base == '' then {} else { runbook_url: std.rstripChars(base, '/') + '/' + rule.alert + '.md' }
  ) };

{
  // groups are the groups of files with the changes of a _config. A name that nothing has is an error.
  groups(files, config):
    local all = std.flattenArrays([std.parseYaml(file).groups for file in files]);
    local alerts = std.set([rule.alert for group in all for rule in group.rules if std.objectHas(rule, 'alert')]);
    local named = config.leaveOut + [std.split(key, ':')[0] for key in std.objectFields(config.severities)];
    local unknown = std.setDiff(std.set(named), alerts)
                    + std.setDiff(std.set(std.objectFields(config.thresholds)), std.set([t.name for t in thresholds]));
    local wrong = std.setDiff(std.set(std.objectValues(config.severities)), std.set(['critical', 'warning', 'info']));
    assert unknown == [] : 'no alert and no threshold is called %s' % std.join(', ', unknown);
    assert wrong == [] : 'severities are critical, warning and info, not %s' % std.join(', ', wrong);
    local read = readShipped(std.set([std.split(key, ':')[0] for key in std.objectFields(config.severities)]));
    local steps = [setThreshold(t, config.thresholds[t.name]) for t in thresholds if std.objectHas(config.thresholds, t.name)]
                  + (if config.severities == {} then [] else [function(rule) texts(rule, read)])
                  + [select(config.selector), setLabels(config), setRunbook(config.runbookURL)];
    local changed(rule) = std.foldl(function(rule, step) step(rule), steps, rule);
    [
      group { rules: [changed(rule) for rule in rules] }
      for group in all
      for rules in [[rule for rule in group.rules if !std.member(config.leaveOut, std.get(rule, 'alert', ''))]]
      if rules != []
    ],
}
