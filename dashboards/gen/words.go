package main

// portStates are those of enum ib_port_state.
var portStates = []word{
	{Value: "1", Text: "DOWN", Colour: bad},
	{Value: "2", Text: "INIT", Colour: warning},
	{Value: "3", Text: "ARMED", Colour: warning},
	{Value: "4", Text: "ACTIVE", Colour: good},
	{Value: "5", Text: "ACTIVE_DEFER", Colour: notice},
}

// physicalStates are those of the InfiniBand specification, PortInfo.PortPhysicalState.
var physicalStates = []word{
	{Value: "1", Text: "Sleep", Colour: "transparent"},
	{Value: "2", Text: "Polling", Colour: warning},
	{Value: "3", Text: "Disabled", Colour: bad},
	{Value: "4", Text: "Training", Colour: warning},
	{Value: "5", Text: "LinkUp", Colour: good},
	{Value: "6", Text: "LinkErrorRecovery", Colour: warning},
	{Value: "7", Text: "PhyTest", Colour: notice},
}

// recoveries are the recovery actions of a GPU (nvmlDeviceGpuRecoveryAction_t).
var recoveries = []word{
	unknown,
	{Value: "0", Text: "none", Colour: "transparent"},
	{Value: "1", Text: "reset", Colour: warning},
	{Value: "2", Text: "node reboot", Colour: warning},
	{Value: "3", Text: "drain peer-to-peer jobs", Colour: warning},
	{Value: "4", Text: "drain and reset", Colour: warning},
	{Value: "5", Text: "IMEX domain recovery", Colour: warning},
	{Value: "6", Text: "PCIe bus reset", Colour: warning},
	{Value: "7", Text: "system reboot", Colour: warning},
}

var severities = []word{
	{Value: "3", Text: "critical", Colour: bad},
	{Value: "2", Text: "warning", Colour: warning},
	{Value: "1", Text: "info", Colour: remark},
	{Value: "0", Text: "none", Colour: good},
}

// drains are the values of the label drain.
var drains = []word{
	{Value: "evict", Text: "evict", Colour: "transparent"},
	{Value: "cordon", Text: "cordon", Colour: "transparent"},
	{Value: "no", Text: "no", Colour: "transparent"},
}

var alertStates = []word{
	{Value: "firing", Text: "firing", Colour: "transparent"},
	{Value: "pending", Text: "pending", Colour: "transparent"},
}

// worsts are the worst states of what a cell of a grid stands for. Unknown is worse than info.
var worsts = []word{
	{Value: "5", Text: "critical", Colour: bad},
	{Value: "4", Text: "warning", Colour: warning},
	{Value: "3", Text: "unknown", Colour: neutral},
	{Value: "2", Text: "info", Colour: remark},
	{Value: "1", Text: "ok", Colour: good},
}

var direct = []word{
	{Value: "1", Text: "direct", Colour: good},
	{Value: "0", Text: "staged", Colour: warning},
	{Value: "-1", Text: "staged by job", Colour: warning},
	{Value: "2", Text: "staged (hardware)", Colour: "transparent"},
}

// transports are ranks of the transport of a job.
var transports = []word{
	{Value: "3", Text: "slow", Colour: warning},
	{Value: "2", Text: "unknown", Colour: neutral},
	{Value: "1", Text: "direct", Colour: good},
}

// sources are where an expected rate or width comes from.
var sources = []word{
	{Value: "pin", Text: "site configuration", Colour: neutral},
	{Value: "link_modes", Text: "link modes of both ends", Colour: neutral},
	{Value: "link_partner", Text: "enabled by both ends", Colour: neutral},
	{Value: "siblings", Text: "siblings on this host", Colour: neutral},
	{Value: "high_water_mark", Text: "highest rate of this port so far", Colour: neutral},
	{Value: "capability", Text: "capability of the device", Colour: neutral},
}

var answers = []word{{Value: "1", Text: "reachable", Colour: good}, {Value: "0", Text: "unreachable", Colour: bad}}

// wrongs are what may be wrong with a link of a fabric.
var wrongs = []word{
	{Value: "3", Text: "gone", Colour: bad},
	{Value: "2", Text: "degraded", Colour: warning},
	{Value: "1", Text: "unequal settings", Colour: notice},
}

// smStates are those of SMInfo (IBA 14.2.5.13).
var smStates = []word{
	{Value: "3", Text: "master", Colour: good},
	{Value: "2", Text: "standby", Colour: "transparent"},
	{Value: "1", Text: "discovering", Colour: notice},
	{Value: "0", Text: "not active", Colour: "transparent"},
}

// okOrFailed are the results of a check.
var okOrFailed = []word{{Value: "1", Text: "ok", Colour: good}, {Value: "0", Text: "failed", Colour: bad}}
