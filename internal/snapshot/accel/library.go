package accel

// ProcessLibrary is a communication library of a process, with the transports to other hosts that it can use.
type ProcessLibrary struct {
	Process       *Process
	Library       string             // nccl, ucx, …
	Possible      []LibraryTransport // the best first
	InUse         string             // gdr, rdma, tcp, none, unknown: gdr/library
	Reason        string             // why it is no better one, or unknown
	Words, Remedy string
}

// LibraryTransport is whether a library can use a transport.
type LibraryTransport struct {
	Transport string // nvlink, ibgda, gdr, rdma, tcp
	Possible  string // yes, no, unknown
	Reason    string // empty: yes
}
