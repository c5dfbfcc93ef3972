package kernellog

import "rdma_exporter/internal/lazy"

var intelPatterns = []Pattern{
	// ice, irdma, i40e.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_tx_timeout; drivers/net/ethernet/intel/i40e/i40e_main.c, i40e_tx_timeout; 5.15 to 6.18",
		drivers: intel, needle: "tx_timeout", form: lazy.Regexp(`^tx_timeout: (?:VSI_num|VSI_seid): \d+, Q (?P<queue>\d+)`),
	},
	{
		Kind: FirmwareError, Meaning: "the device reports malicious or malformed descriptors of its driver",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_handle_mdd_event; 5.15 to 6.18",
		drivers: intel, needle: "Malicious Driver Detection", form: lazy.Regexp(`Malicious Driver Detection event`),
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot reset the device",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_reset_subtask and ice_rebuild; 5.15 to 6.18",
		drivers: intel, needle: "eset failed",
		form: lazy.Regexp(`^(?:PF|Core|Global|EMP) ?[Rr]eset failed|^Rebuild failed, unload and reload driver`),
	},
	{
		Kind: RecoveryStarted, Meaning: "the RDMA driver asks for a reset of the function",
		Source:  "drivers/infiniband/hw/irdma/hw.c, irdma_process_aeq and ctrl.c; 5.15 to 6.18",
		drivers: intel, needle: "request", form: lazy.Regexp(`abnormal ae_id = (?P<event>0x[0-9a-f]+)|requesting reset`),
	},
}
