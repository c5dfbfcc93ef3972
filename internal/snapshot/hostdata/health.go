package hostdata

import "strings"

// Health is the devlink health reporters of RDMA devices.
type Health struct {
	Reporters []HealthReporter
}

// HealthReporter is one reporter of the function of an RDMA device: devlink HEALTH_REPORTER_GET.
type HealthReporter struct {
	Device     string  // RDMA device
	Name       string  // DEVLINK_ATTR_HEALTH_REPORTER_NAME: fw, fw_fatal, vnic, …
	State      *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_STATE: 0 healthy, 1 error
	Errors     *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, errors since the driver created the reporter
	Recoveries *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT, successful recoveries
}

// Sensors are the temperature sensors of adapters.
type Sensors struct {
	Devices []DeviceSensors
}

// DeviceSensors are the sensors of one RDMA device's PCI function: hwmon.
type DeviceSensors struct {
	Device  string
	Sensors []Sensor
}

// Sensor is one channel: tempK_label, tempK_input, tempK_crit, in degrees Celsius; nil: unknown or implausible.
type Sensor struct {
	Name            string
	Value, Critical *float64
}

// OfModule reports whether it is the sensor of a transceiver: mlx5 names it Module and its number.
func (s *Sensor) OfModule() bool {
	number, ok := strings.CutPrefix(s.Name, "Module")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
