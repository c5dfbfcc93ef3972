package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

// fakeKubelet answers List by a function.
type fakeKubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	list func(context.Context) (*podresources.ListPodResourcesResponse, error)
}

func (f *fakeKubelet) List(
	ctx context.Context, _ *podresources.ListPodResourcesRequest,
) (*podresources.ListPodResourcesResponse, error) {
	return f.list(ctx)
}

// serveKubelet serves the API on a socket.
func serveKubelet(t *testing.T, list func(context.Context) (*podresources.ListPodResourcesResponse, error)) Kubelet {
	t.Helper()
	socket, listener := listenUnix(t)
	s := grpc.NewServer()
	var service podresources.PodResourcesListerServer = podresources.UnimplementedPodResourcesListerServer{}
	if list != nil {
		service = &fakeKubelet{list: list}
	}
	podresources.RegisterPodResourcesListerServer(s, service)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return Kubelet(socket)
}

func listenUnix(t *testing.T) (string, net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pods") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "kubelet.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return socket, l
}

func pod(space, name string, containers ...*podresources.ContainerResources) *podresources.PodResources {
	return &podresources.PodResources{Namespace: space, Name: name, Containers: containers}
}

func allocated(resource string, ids ...string) *podresources.ContainerResources {
	return &podresources.ContainerResources{
		Name: "main", Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
	}
}

func TestPods(t *testing.T) {
	const gpu = "GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b"
	claim := &podresources.ContainerResources{DynamicResources: []*podresources.DynamicResource{{
		ClaimName: "gpus", ClaimNamespace: "ml", ClaimResources: []*podresources.ClaimResource{
			{DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: "gpu-2"},
			{DriverName: "other.example.com", DeviceName: "x"},
		},
	}}}
	k := serveKubelet(t, func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
			pod("ml", "train-1", allocated("nvidia.com/gpu", gpu+"::1"), allocated("nvidia.com/sriov", "0000:3b:02.1"), allocated("nvidia.com/sriov", "0000:3b:02.1")),
			pod("ml", "train-0.worker", claim),
			pod("kube-system", "coredns", &podresources.ContainerResources{CpuIds: []int64{1, 2}}),
			pod("infer", "shared", allocated("rdma/hca_shared", "7")),
			pod("default", "vf", allocated("example.com/vf", "0000:3b:02.2", "mlx5_core.sf.4")),
		}}, nil
	})
	before := runtime.NumGoroutine()
	got, err := k.Pods(t.Context())
	want := []accel.Pod{
		{Namespace: "default", Name: "vf", Devices: []string{"0000:3b:02.2", "mlx5_core.sf.4"}},
		{Namespace: "ml", Name: "train-0.worker", Devices: []string{"nvidia2"}},
		{Namespace: "ml", Name: "train-1", Devices: []string{"0000:3b:02.1", gpu}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %+v, want %+v", err, got, want)
	}
	for range 50 {
		if _, err := k.Pods(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+5 { // the server's own end after the client
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines after 51 requests, %d before", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}

func TestPodsErrors(t *testing.T) {
	many := func(n int, name, id string) func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		return func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			out := &podresources.ListPodResourcesResponse{}
			for i := range n {
				out.PodResources = append(out.PodResources,
					pod("default", fmt.Sprintf(name, i), allocated("example.com/vf", fmt.Sprintf(id, i%8))))
			}
			return out, nil
		}
	}
	fails := func(c codes.Code) func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		return func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			return nil, status.Error(c, "text\n"+strings.Repeat("x", 4000))
		}
	}
	for _, c := range []struct {
		name   string
		list   func(context.Context) (*podresources.ListPodResourcesResponse, error)
		want   error
		reason access.Reason
	}{
		{"a kubelet without the service", nil, syscall.EOPNOTSUPP, access.Unsupported},
		{"no permission", fails(codes.PermissionDenied), syscall.EACCES, access.Permission},
		{"limited requests", fails(codes.ResourceExhausted), syscall.EMSGSIZE, access.IO},
		{"another code", fails(codes.Unknown), nil, access.IO},
		{"more than a message", func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			huge := pod("default", "p", allocated(strings.Repeat("x", podsMessage), "0000:3b:02.1"))
			return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{huge}}, nil
		}, syscall.EMSGSIZE, access.IO},
		{"more pods than the limit", many(podsMost+1, "p-%d", "0000:3b:02.%d"), syscall.EMSGSIZE, access.IO},
		{"a name with a line break", many(1, "a\nb%d", "0000:3b:02.%d"), access.ErrMalformed, access.Malformed},
		{"no name", many(1, "%.0d", "0000:3b:02.%d"), access.ErrMalformed, access.Malformed},
		{"no answer", func(ctx context.Context) (*podresources.ListPodResourcesResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, access.ErrLate, access.Late},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := serveKubelet(t, c.list)
			ctx, cancel := t.Context(), func() {}
			if c.reason == access.Stuck {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
			}
			defer cancel()
			got, err := k.Pods(ctx)
			var e *access.Error
			if got != nil || !errors.As(err, &e) || c.want != nil && !errors.Is(err, c.want) ||
				access.ReasonOf(err) != c.reason {
				t.Errorf("%v, %v, reason %s, want %v", got, err, access.ReasonOf(err), c.want)
			}
			if err != nil && (len(err.Error()) > 300 || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error of %d bytes: %s", len(err.Error()), err)
			}
		})
	}
}

// TestPodsPeers: peers that are no gRPC servers.
func TestPodsPeers(t *testing.T) {
	for name, talk := range map[string]func(net.Conn){
		"closes":              func(net.Conn) {},
		"answers in HTTP/1.1": func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"garbage without end": func(c net.Conn) {
			for junk := bytes.Repeat([]byte{0, 0, 1, 0x9f}, 1<<12); ; {
				if _, err := c.Write(junk); err != nil {
					return
				}
			}
		},
		"settings and then nothing": func(c net.Conn) {
			_, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
			_, _ = io.Copy(io.Discard, c)
		},
		"no answer": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			socket, l := listenUnix(t)
			accepted := make(chan struct{}, 16)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					accepted <- struct{}{}
					go func() { talk(c); _ = c.Close() }()
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			got, err := Kubelet(socket).Pods(ctx)
			if took := time.Since(start); got != nil || err == nil || took > time.Second {
				t.Errorf("%v, %v in %s", got, err, took)
			}
			if len(accepted) != 1 {
				t.Errorf("%d connections, want 1", len(accepted))
			}
		})
	}
}

func TestPodsWithoutSocket(t *testing.T) {
	dir := t.TempDir()
	if _, err := Kubelet(dir + "/none.sock").Pods(t.Context()); !access.IsAbsent(err) ||
		strings.Count(err.Error(), "none.sock") != 1 {
		t.Error(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Kubelet(file).Pods(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}
