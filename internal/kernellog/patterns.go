package kernellog

import "slices"

// Pattern is a message of the kernel.
type Pattern struct {
	Kind    Kind
	Meaning string
	Follows string // what usually comes next; empty: nothing in particular
	Source  string // file and function of the kernel or driver, with the versions that have the text

	drivers map[string]bool // of the prefix; nil: any or none. That of a line with an RDMA device alone is not known
	// form is an expression for the text: the groups pci, netdev, device and driver are the object, others the detail.
	form string
}

func of(drivers ...string) map[string]bool {
	m := map[string]bool{}
	for _, d := range drivers {
		m[d] = true
	}
	return m
}

var (
	mlx5      = of("mlx5_core", "mlx5_ib")
	mlx4      = of("mlx4_core", "mlx4_en", "mlx4_ib")
	broadcom  = of("bnxt_en", "bnxt_re", "bng_en", "bng_re", "bnge")
	intel     = of("ice", "irdma", "i40e", "idpf")
	pensando  = of("ionic", "ionic_rdma")
	hisilicon = of("hns3", "hns_roce", "hns_roce_hw_v2", "hclge", "hclgevf")
	amazon    = of("efa", "ena")
	microsoft = of("mana", "mana_ib")
	alibaba   = of("erdma")
	chelsio   = of("cxgb4", "iw_cxgb4")
	amd       = of("amdgpu", "")
	pcieports = of("pcieport")
)

// Patterns are the messages. The first that matches counts.
var Patterns = slices.Concat(
	mellanoxPatterns, broadcomPatterns, intelPatterns, othersPatterns, corePatterns, pciePatterns, gpuPatterns,
)
