package words

import "testing"

func TestWords(t *testing.T) {
	for _, k := range []struct{ got, want string }{
		{Count(0, "port"), "0 ports"},
		{Count(1, "port"), "1 port"},
		{Count(2, "port"), "2 ports"},
		{Count(2, "process"), "2 processes"},
		{Count(1, "process"), "1 process"},
		{Join(", ", "a", "", "b", ""), "a, b"},
		{Join(", "), ""},
		{Spaced("link_error_recovery"), "link error recovery"},
		{HostName("gpu-1:10879"), "gpu-1"},
		{HostName("gpu-1"), "gpu-1"},
		{HostName("[2001:db8::1]:10879"), "2001:db8::1"},
		{HostName("2001:db8::1"), "2001:db8::1"},
		{Transfers(32e9), "32 GT/s"},
		{Transfers(2.5e9), "2.5 GT/s"},
		{Plain("a\x1b[31m\r\u202e\tb\nü"), "a□[31m□□\tb\nü"},
		{OneLine(" a \n\tb\a "), "a b□"},
	} {
		if k.got != k.want {
			t.Errorf("%q, want %q", k.got, k.want)
		}
	}
}
