package shared

import "slices"

// memoryQPs are drivers whose query_qp reads memory only. Those of other drivers send a firmware command.
var memoryQPs = []string{"rxe", "siw", "hfi1", "cxgb4", "irdma"}

// ListsQPs reports whether a driver lists its queue pairs without firmware commands.
func ListsQPs(driver string) bool { return slices.Contains(memoryQPs, driver) }
