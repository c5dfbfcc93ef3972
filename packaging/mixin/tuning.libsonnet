// The changes of `rdma_exporter rules --tune.*`, for rules that were parsed. rules/thresholds.json is the table of thresholds.
local thresholds = std.parseJson(importstr '../../rules/thresholds.json');

local isWord(c) = std.length(std.findSubstr(c, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_')) > 0;

// value is a threshold's value as PromQL has it.
local value(threshold, given) =
  local text = std.toString(given);
  local number = if std.endsWith(text, '%') then std.parseJson(std.rstripChars(text, '%')) / 100 else std.parseJson(text);
  assert threshold.unit != 'count' || number >= 1 && number == std.floor(number) : '%s: %s is no whole number, 1 or more' % [threshold.name, text];
  assert threshold.unit != 'ratio' || number > 0 && number <= 1 : '%s: %s is not above 0 and at most 1' % [threshold.name, text];
  '%.6g' % number;

// recorded is the group with the thresholds of a site, which the rules read in place of their defaults.
local recorded(given) = {
  name: 'rdma-thresholds',
  rules: [
    { record: 'rdma:threshold', labels: { name: t.name }, expr: 'vector(%s)' % value(t, given[t.name]) }
    for t in std.sort(thresholds, function(t) t.name)
    if std.objectHas(given, t.name)
  ],
};

local setWait(waits) = function(rule) if !std.objectHas(waits, std.get(rule, 'alert', '')) then rule else rule { 'for': waits[rule.alert] };

local setLabels(config) = function(rule)
  local changed = std.set([std.split(key, ':')[0] for key in std.objectFields(config.severities)]);
  local shipped = rule.labels.severity;
  local severity = std.get(config.severities, rule.alert + ':' + shipped, std.get(config.severities, rule.alert, shipped));
  if !std.objectHas(rule, 'alert') then rule
  else rule {
    labels: config.labels + rule.labels + (
      if !std.setMember(rule.alert, changed) then {}
      else { default_severity: shipped, severity: severity, [if severity == 'info' && shipped != 'info' then 'drain']: 'no' }
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
    local named = config.leaveOut + std.objectFields(config.waits) + [std.split(key, ':')[0] for key in std.objectFields(config.severities)];
    local unknown = std.setDiff(std.set(named), alerts)
                    + std.setDiff(std.set(std.objectFields(config.thresholds)), std.set([t.name for t in thresholds]));
    local wrong = std.setDiff(std.set(std.objectValues(config.severities)), std.set(['critical', 'warning', 'info']));
    local noDurations = [d for d in std.objectValues(config.waits) if !isWord(d[0]) || std.length(std.findSubstr(d[std.length(d) - 1], 'dhms')) == 0];
    assert unknown == [] : 'no alert and no threshold is called %s' % std.join(', ', unknown);
    assert wrong == [] : 'severities are critical, warning and info, not %s' % std.join(', ', wrong);
    assert noDurations == [] : 'waits: %s is no duration such as 2m' % std.join(', ', noDurations);
    local steps = [setWait(config.waits), select(config.selector), setLabels(config), setRunbook(config.runbookURL)];
    local changed(rule) = std.foldl(function(rule, step) step(rule), steps, rule);
    (if config.thresholds == {} then [] else [recorded(config.thresholds)]) + [
      group { rules: [changed(rule) for rule in rules] }
      for group in all
      for rules in [[rule for rule in group.rules if !std.member(config.leaveOut, std.get(rule, 'alert', ''))]]
      if rules != []
    ],
}
