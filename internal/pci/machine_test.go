package pci

import "testing"

func TestVirtual(t *testing.T) {
	for _, c := range []struct {
		vendor, product string
		want            bool
	}{
		{"QEMU", "Standard PC (Q35 + ICH9, 2009)", true},
		{"Red Hat", "KVM", true},
		{"VMware, Inc.", "VMware7,1", true},
		{"Microsoft Corporation", "Virtual Machine", true},
		{"Microsoft Corporation", "Surface Laptop", false},
		{"Amazon EC2", "p5.48xlarge", true},
		{"Amazon EC2", "p5.metal", false},
		{"Google", "Google Compute Engine", true},
		{"Xen", "HVM domU", true},
		{"Supermicro", "HVM domU", true},
		{"NVIDIA", "DGXH100", false},
		{"Dell Inc.", "PowerEdge XE9680", false},
		{"", "", false},
	} {
		t.Run(c.vendor+", "+c.product, func(t *testing.T) {
			if got := Virtual(c.vendor, c.product); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	if !Emulated("0x1b36\n") || Emulated("0x8086") {
		t.Error("bridges of QEMU are not distinguished")
	}
}

func TestCoupled(t *testing.T) {
	for _, c := range []struct {
		name, gpu, root string
		want            bool
	}{
		{"both NVIDIA", "0x10de\n", "0x10de\n", true},
		{"another root", "0x10de", "0x8086", false},
		{"another GPU", "0x15b3", "0x10de", false},
		{"nothing read", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Coupled(c.gpu, c.root); got != c.want {
				t.Errorf("%q below %q: %v, want %v", c.gpu, c.root, got, c.want)
			}
		})
	}
}

func TestTranslates(t *testing.T) {
	for text, want := range map[string][2]bool{
		"DMA\n": {true, true}, "DMA-FQ\n": {true, true}, "identity\n": {false, true}, "blocked": {}, "unmanaged": {},
		"unknown": {}, "": {},
	} {
		if got, ok := Translates(text); got != want[0] || ok != want[1] {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}
