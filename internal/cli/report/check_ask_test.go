package report

import "testing"

func TestUsersOfServices(t *testing.T) {
	for uid, want := range map[int]bool{
		0: true, 999: true, 1000: false, 60000: false, 61183: false, 61184: true, 65532: true, 65534: true, 65535: false,
		1000000: false,
	} {
		if got := isOfService(uid); got != want {
			t.Errorf("%d: %t", uid, got)
		}
	}
}
