package main

import (
	"rdma_exporter/dashboards/gen/panels"
	"rdma_exporter/dashboards/gen/promql"
)

// The words of the boards. With the package before each of them, expressions would be longer than what they say.
type (
	board  = panels.Board
	choice = panels.Choice
	column = panels.Column
	count  = panels.Count
	panel  = panels.Panel
	query  = panels.Query
	row    = panels.Row
	step   = panels.Step
	way    = panels.Way
	word   = panels.Word
	scope  = promql.Scope
)

const (
	bad        = panels.Bad
	good       = panels.Good
	grid       = panels.Grid
	neutral    = panels.Neutral
	notHere    = panels.NotHere
	notice     = panels.Notice
	remark     = panels.Remark
	scientific = panels.Scientific
	warning    = panels.Warning
	whole      = panels.Whole
	device     = promql.Device
	devices    = promql.Devices
	fabricOf   = promql.FabricOf
	fabrics    = promql.Fabrics
	gpuName    = promql.GPUName
	host       = promql.Host
	hostName   = promql.HostName
	hosts      = promql.Hosts
	perAlert   = promql.PerAlert
	perDevice  = promql.PerDevice
	perGPU     = promql.PerGPU
	perHost    = promql.PerHost
	perLane    = promql.PerLane
	perNetdev  = promql.PerNetdev
	perPort    = promql.PerPort
	portName   = promql.PortName
	short      = promql.Short
)

var (
	counts          = panels.Counts
	graph           = panels.Graph
	hidden          = panels.Hidden
	line            = panels.Line
	lines           = panels.Lines
	matrix          = panels.Matrix
	table           = panels.Table
	thresholds      = panels.Thresholds
	timeline        = panels.Timeline
	unknown         = panels.Unknown
	above           = promql.Above
	atMostAll       = promql.AtMostAll
	bottom          = promql.Bottom
	countBy         = promql.CountBy
	highest         = promql.Highest
	labelled        = promql.Labelled
	labelledBy      = promql.LabelledBy
	lowest          = promql.Lowest
	maxBy           = promql.MaxBy
	minBy           = promql.MinBy
	orNone          = promql.OrNone
	orZero          = promql.OrZero
	overRange       = promql.OverRange
	perMillion      = promql.PerMillion
	retransmissions = promql.Retransmissions
	sumBy           = promql.SumBy
	top             = promql.Top
)
