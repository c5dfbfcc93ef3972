package pci

import "testing"

func TestParseAER(t *testing.T) {
	const whole = "RxErr 3\nBadTLP 0\nBadDLLP 14\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 17\n"
	for _, c := range []struct {
		name, text string
		want       uint64
		ok         bool
	}{
		{"whole", whole, 17, true},
		{"one error", "Undefined 0\nDLP 0\ndev_cor_errs_bit[3] 1\nTOTAL_ERR_FATAL 1\n", 1, true},
		{"no total", "RxErr 3\n", 0, false},
		{"no number", "TOTAL_ERR_COR\n", 0, false},
		{"negative", "TOTAL_ERR_COR -1\n", 0, false},
		{"empty", "", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := ParseAER(c.text); got != c.want || ok != c.ok {
				t.Errorf("%q: %d %v", c.text, got, ok)
			}
		})
	}
}

func FuzzParseAER(f *testing.F) {
	f.Add("RxErr 3\nTOTAL_ERR_COR 17\n")
	f.Fuzz(func(_ *testing.T, text string) { ParseAER(text) })
}
