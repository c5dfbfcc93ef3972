package page

// value is the text of a cell. What is unknown, and what does not apply, has a class of its own.
type value struct{ Text, Class string }

const classUnknown = "unknown"

// unknown has the reason why there is no value.
func unknown(reason string) value { return value{"unknown: " + reason, classUnknown} }

// notApplicable is for what a port of its kind or in its state does not have.
var notApplicable = value{"n/a", classUnknown}
