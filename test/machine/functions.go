package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RoCE returns a ConnectX-7 of a recorded HGX H200: 21 files of PMA counters, 31 of hw_counters, a netdev, a sensor,
// and four PCIe links.
func RoCE(repository string) Model {
	return Model{
		File: filepath.Join(repository, "fixtures/sysfs/hgx-h200-roce.txtar"), Root: "/pci0000:15/", Except: "/0000:17:01.0/",
		Names: []string{
			"mlx5_0=mlx5_%d", "enp24s0np0=enP%dp24s0np0", "umad0=umad%d", "uverbs0=uverbs%d", "hwmon192=hwmon%d",
			"10028e0003d23fb8=10%04x0003d23fb8", "8e:0210=8e:%04x", "0a00:0111=0a00:%04x", "8e:02:10=8e:02:%02x",
		},
	}
}

// Functions is the number of virtual functions and subfunctions of each physical function.
type Functions struct{ Virtual, Sub int }

// GrowFunctions writes a machine with n devices of the model RoCE, each with the same virtual functions and
// subfunctions, as mlx5 has them in sysfs: a virtual function is a PCI function with the link physfn and a device id of
// its own, a subfunction an auxiliary device below the physical function. Both have RDMA device and netdev, neither has
// sensors, AER counters nor SR-IOV files.
func GrowFunctions(repository string, n int, f Functions, dir string) error {
	if err := RoCE(repository).Grow(n, dir); err != nil {
		return err
	}
	for i := range n {
		pf := physical{root: dir, number: i, parts: f.Virtual + f.Sub, first: n}
		target, err := filepath.EvalSymlinks(filepath.Join(dir, "sys/class/infiniband", pf.device(), "device"))
		if err != nil {
			return err
		}
		pf.dir = target
		if err := pf.grow(f); err != nil {
			return err
		}
	}
	return nil
}

// physical is a physical function to which others are added.
type physical struct {
	root, dir            string
	number, parts, first int
}

func (p physical) device() string { return fmt.Sprintf("mlx5_%d", p.number) }

// grow adds the functions. Virtual functions count as SR-IOV does: eight to a device number, 32 of those to a bus.
func (p physical) grow(f Functions) error {
	for _, x := range []struct {
		file string
		n    int
	}{{"sriov_totalvfs", max(8, f.Virtual)}, {"sriov_numvfs", f.Virtual}} {
		if err := os.WriteFile(filepath.Join(p.dir, x.file), fmt.Appendf(nil, "%d\n", x.n), 0o644); err != nil {
			return err
		}
	}
	for k := range f.Virtual {
		rid := k + 1 // 0 is the physical function
		address := fmt.Sprintf("%04x:%02x:%02x.%d", p.number, 0x18+rid>>8, rid>>3&31, rid&7)
		dir := filepath.Join(filepath.Dir(p.dir), address)
		if err := p.part(k, dir, fmt.Sprintf("v%d", k)); err != nil {
			return err
		}
		if err := p.virtual(k, dir, address); err != nil {
			return err
		}
	}
	for k := range f.Sub {
		if err := p.part(f.Virtual+k, fmt.Sprintf("%s/mlx5_core.sf.%d", p.dir, p.number*f.Sub+k+1), fmt.Sprintf("s%d",
			k)); err != nil {
			return err
		}
	}
	return nil
}

// virtual writes what a virtual function has as a PCI function: it has no link registers.
func (p physical) virtual(k int, dir, address string) error {
	for name, text := range map[string]string{
		"vendor": "0x15b3", "device": "0x101e", "class": "0x020000", "numa_node": "0",
		"current_link_speed": "Unknown", "current_link_width": "0", "max_link_speed": "Unknown", "max_link_width": "255",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	for _, l := range [][2]string{
		{dir + "/physfn", "../" + filepath.Base(p.dir)},
		{dir + "/driver", p.up(dir) + "/sys/bus/pci/drivers/mlx5_core"},
		{fmt.Sprintf("%s/virtfn%d", p.dir, k), "../" + address},
		{p.root + "/sys/bus/pci/devices/" + address, "../../../" + p.below(dir)},
	} {
		if err := os.Symlink(l[1], l[0]); err != nil {
			return err
		}
	}
	return nil
}

// below returns a path relative to sys.
func (p physical) below(dir string) string {
	return strings.TrimPrefix(dir, p.root+"/sys/")
}

// up returns the relative path from a directory to the root.
func (p physical) up(dir string) string {
	return strings.TrimSuffix(strings.Repeat("../", strings.Count(dir[len(p.root):], "/")), "/")
}

// part copies the RDMA device and the netdev of the physical function below a new device directory.
func (p physical) part(k int, dir, suffix string) error {
	number := p.first + p.number*p.parts + k
	netdev := fmt.Sprintf("enP%dp24s0", p.number)
	names := strings.NewReplacer(
		p.device(), fmt.Sprintf("mlx5_%d", number), netdev+"np0", netdev+suffix,
		fmt.Sprintf("umad%d", p.number), fmt.Sprintf("umad%d", number), fmt.Sprintf("uverbs%d", p.number),
		fmt.Sprintf("uverbs%d", number),
		fmt.Sprintf("8e:%04x", p.number), fmt.Sprintf("8f:%04x", number), fmt.Sprintf("0a00:%04x", p.number),
		fmt.Sprintf("0a01:%04x", number),
		fmt.Sprintf("8e:02:%02x", p.number), fmt.Sprintf("8f:%02x:%02x", number>>8, number&255),
		filepath.Base(p.dir), filepath.Base(dir),
	)
	for _, class := range []string{"infiniband", "infiniband_verbs", "infiniband_mad", "net"} {
		if err := p.copyTree(filepath.Join(p.dir, class), filepath.Join(dir, class), names); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(dir, class))
		if err != nil {
			return err
		}
		for _, e := range entries {
			link := filepath.Join(p.root, "sys/class", class, e.Name())
			if err := os.Symlink("../../"+p.below(filepath.Join(dir, class, e.Name())), link); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTree copies a tree with other names. Files with the same content are hard links, except those of Traffic.
func (p physical) copyTree(from, to string, names *strings.Replacer) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		copied := filepath.Join(to, names.Replace(strings.TrimPrefix(path, from)))
		switch {
		case e.IsDir():
			return os.MkdirAll(copied, 0o755)
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(names.Replace(target), copied)
		case filepath.Base(from) == "net" && strings.HasPrefix(e.Name(), "phys_"): // of the physical port
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := names.Replace(string(b))
		if text == string(b) && !moves.MatchString(path) {
			return os.Link(path, copied)
		}
		return os.WriteFile(copied, []byte(text), 0o644)
	})
}
