package pci

import "testing"

func TestParseAER(t *testing.T) {
	const whole = "RxErr 3\nBadTLP 0\nBadDLLP 14\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 17\n"
	for _, c := range []struct {
		text string
		want uint64
		ok   bool
	}{
		{whole, 17, true},
		{"Undefined 0\nDLP 0\ndev_cor_errs_bit[3] 1\nTOTAL_ERR_FATAL 1\n", 1, true},
		{"RxErr 3\n", 0, false},
		{"TOTAL_ERR_COR\n", 0, false},
		{"TOTAL_ERR_COR -1\n", 0, false},
		{"", 0, false},
	} {
		if got, ok := ParseAER(c.text); got != c.want || ok != c.ok {
			t.Errorf("%q: %d %v", c.text, got, ok)
		}
	}
}

func FuzzParseAER(f *testing.F) {
	f.Add("RxErr 3\nTOTAL_ERR_COR 17\n")
	f.Fuzz(func(_ *testing.T, text string) { ParseAER(text) })
}
