package incidents
import ("testing";"time";"flag";"runtime";"fmt")
var tmpN = flag.Int("tmpn", 16, "")
var tmpM = flag.String("tmpm", "hgx-h200-roce", "")
var tmpTop = flag.Int("tmptop", 15, "")
func TestTmp(t *testing.T) {
	s := spec{cluster:"a", hosts:*tmpN, ports: []int{8}, layer: ethernet, pfc:true, gpus:true, machines: []string{*tmpM}}
	if *tmpM != "hgx-h200-roce" && (*tmpM)[:3] == "dgx" { s.layer=infiniBand; s.pfc=false; s.fabric=true }
	readRecordings(t, s)
	f := newFleet(s)
	n := 0
	for _, x := range f.targets() { n += len(x.samples) }
	t.Log("samples", n)
	srv := newServer(t, f)
	fired := map[string]int{}
	groups := map[string]time.Duration{}
	var ev, sc time.Duration
	for i := 0; i < 60; i++ {
		for k:=0;k<6;k++ { f.step() }
		a := time.Now()
		if err := srv.scrape(f, began.Add(f.now)); err != nil { t.Fatal(err) }
		b := time.Now()
		for _, g := range srv.Groups { c:=time.Now(); g.Eval(t.Context(), began.Add(f.now)); groups[g.Name()] += time.Since(c) }
		if err := srv.eval(t.Context(), began.Add(f.now), func(a alert) { fired[a.labels.String()]++ }); err != nil { t.Fatal(err) }
		ev += time.Since(b); sc += b.Sub(a)
	}
	t.Log("eval each", ev/120, "scrape", sc/60)
	for g, d := range groups { if d > ev/60 { t.Log(g, d/60) } }
	k := 0
	for x, n := range fired { k++; if k < 40 { t.Log(n, x) } }
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println(m.HeapAlloc>>20, srv.DB.Head().NumSeries())
}
