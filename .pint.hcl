# What pint looks for in the rules, with no server to ask.
checks {
  disabled = [
    # Groups are evaluated in the order of their files, and by a server within seconds of each other.
    "rule/dependency",
    # A recording rule holds the condition, so that an alert and its chain of causes share it.
    "alerts/comparison",
  ]
}
