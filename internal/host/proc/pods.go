package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
)

// Limits of an answer: a kubelet runs 110 pods by default, and each has some 100 bytes for each device, CPU set and
// NUMA node.
const (
	podsTime    = 2 * time.Second
	podsMessage = 4 << 20
	podsHeader  = 16 << 10
	podsMost    = 4096
	podDevices  = 4096
)

// Names in Kubernetes: RFC 1123 label and subdomain.
var (
	namespaceForm = lazy.Regexp(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	podNameForm   = lazy.Regexp(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

const (
	namespaceLength = 63
	podNameLength   = 253
)

// Kubelet is the socket of a PodResources API.
type Kubelet string

// Pods makes one connection with one request. Nothing remains open between requests.
func (k Kubelet) Pods(ctx context.Context) ([]accel.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTime)
	defer cancel()
	answer, err := k.list(ctx)
	if err != nil {
		return nil, &access.Error{Op: "query", Path: string(k), Err: err}
	}
	out, err := podsOf(answer)
	return out, access.Wrapped("query", string(k), err)
}

func (k Kubelet) list(ctx context.Context) (*podresources.ListPodResourcesResponse, error) {
	socket, err := (&net.Dialer{}).DialContext(ctx, "unix", string(k)) // outside gRPC, for the errno
	if err != nil {
		if e := new(net.OpError); errors.As(err, &e) {
			err = e.Err // without the path
		}
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	var dialled atomic.Bool
	client, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if dialled.Swap(true) {
				return nil, net.ErrClosed
			}
			return socket, nil
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(podsMessage)),
		grpc.WithMaxHeaderListSize(podsHeader), grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithDisableHealthCheck(),
	)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	answer, err := podresources.NewPodResourcesListerClient(client).List(ctx, &podresources.ListPodResourcesRequest{})
	return answer, rpcError(ctx, err)
}

// rpcErrors are what codes of gRPC mean. A kubelet that limits requests answers ResourceExhausted, as gRPC does for a
// message that is too large.
var rpcErrors = map[codes.Code]error{
	codes.DeadlineExceeded:  access.ErrLate,
	codes.Unimplemented:     syscall.EOPNOTSUPP,
	codes.PermissionDenied:  syscall.EACCES,
	codes.Unauthenticated:   syscall.EACCES,
	codes.Internal:          access.ErrMalformed, // also what gRPC cannot decode
	codes.ResourceExhausted: syscall.EMSGSIZE,
}

// rpcError is the error of a request by its code, with the beginning of its text.
func rpcError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w in time", access.ErrLate)
	}
	s := status.Convert(err)
	text := fmt.Sprintf("%s: %.128s", s.Code(), printable(s.Message()))
	if known := rpcErrors[s.Code()]; known != nil {
		return fmt.Errorf("%w (%s)", known, text)
	}
	return errors.New(text)
}

// podsOf returns the pods of an answer.
func podsOf(answer *podresources.ListPodResourcesResponse) ([]accel.Pod, error) {
	out, devices := []accel.Pod{}, 0
	for _, p := range answer.GetPodResources() {
		one := accel.Pod{Namespace: p.GetNamespace(), Name: p.GetName()}
		if len(one.Namespace) > namespaceLength || len(one.Name) > podNameLength ||
			!namespaceForm().MatchString(one.Namespace) || !podNameForm().MatchString(one.Name) {
			return nil, fmt.Errorf("%w: pod %.64q", access.ErrMalformed, one.Namespace+"/"+one.Name)
		}
		for _, c := range p.GetContainers() {
			for _, d := range c.GetDevices() {
				for _, id := range d.GetDeviceIds() {
					one.Devices = append(one.Devices, accel.DeviceOfPod(id))
				}
			}
			for _, claim := range c.GetDynamicResources() {
				for _, r := range claim.GetClaimResources() {
					one.Devices = append(one.Devices, accel.DeviceOfClaim(r.GetDriverName(), r.GetDeviceName()))
				}
			}
		}
		slices.Sort(one.Devices)
		one.Devices = slices.DeleteFunc(slices.Compact(one.Devices), func(d string) bool { return d == "" })
		if len(one.Devices) == 0 {
			continue
		}
		if devices += len(one.Devices); devices > podDevices || len(out) == podsMost {
			return nil, fmt.Errorf("%w: more than %d pods or %d devices", syscall.EMSGSIZE, podsMost, podDevices)
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b accel.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
