package rooted

import "time"

// Kept counts the descriptors that are kept open.
func (t *Tree) Kept() int { return t.kept }

// RelistInterval is how long a listing is kept.
const RelistInterval = relistInterval

// ListedAt sets the time of the last listing of a directory.
func (t *Tree) ListedAt(dir string, at time.Time) { t.dirs[dir].listed = at }

// KeepAtMost sets the maximum number of descriptors that are kept open.
func (t *Tree) KeepAtMost(n int) { t.max = n }

// DescriptorsOf returns the limit of open descriptors of a tree.
var DescriptorsOf = descriptorsOf
