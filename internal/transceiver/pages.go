package transceiver

// The I2C addresses of a module, in 7 bits: A0h and A2h of the standards.
const (
	AddressA0 = 0x50
	AddressA2 = 0x51
)

// half is the size of the lower memory, and of a page in the upper half.
const half = 128

// Ref identifies the bytes of one read request: at most 128, in the lower memory or in one page.
type Ref struct {
	Address    uint8
	Page, Bank uint8 // 0 in the lower memory
	Offset     uint8 // 0–127 lower memory, 128–255 the page
	Length     uint8
}

// Valid reports whether the kernel accepts the request (net/ethtool/eeprom.c).
func (r Ref) Valid() bool {
	end := int(r.Offset) + int(r.Length)
	if r.Address != AddressA0 && r.Address != AddressA2 || r.Length == 0 {
		return false
	}
	if r.Offset < half {
		return r.Page == 0 && r.Bank == 0 && end <= half
	}
	return end <= 2*half
}

// lower and upper identify one byte of A0h.
func lower(offset uint8) Ref { return Ref{Address: AddressA0, Offset: offset, Length: 1} }

func upper(bank, page, offset uint8) Ref {
	return Ref{Address: AddressA0, Bank: bank, Page: page, Offset: offset, Length: 1}
}

// run returns the reference to n bytes from there.
func (r Ref) run(n uint8) Ref {
	r.Length = n
	return r
}

// at returns the reference to another byte of the same half.
func (r Ref) at(offset uint8) Ref {
	r.Offset, r.Length = offset, 1
	return r
}

// Pages is the bytes read from a module, and those it has rejected. The zero value is an unread module.
type Pages struct {
	blocks map[block]*content
}

// block identifies 128 bytes.
type block struct {
	address, bank, page uint8
	upper               bool
}

type content struct {
	bytes [half]byte
	known [half]bool
	never [half]bool // rejected: not requested again
}

func (r Ref) block() block { return block{r.Address, r.Bank, r.Page, r.Offset >= half} }

func (p *Pages) content(r Ref) *content {
	if p.blocks == nil {
		p.blocks = map[block]*content{}
	}
	c := p.blocks[r.block()]
	if c == nil {
		c = &content{}
		p.blocks[r.block()] = c
	}
	return c
}

// Put stores the answer to a request. If the driver has returned fewer bytes than requested, Plan requests the rest. An
// empty answer is a rejection.
func (p *Pages) Put(r Ref, data []byte) {
	if !r.Valid() {
		return
	}
	c, from := p.content(r), int(r.Offset)%half
	data = data[:min(len(data), int(r.Length))]
	copy(c.bytes[from:], data)
	for i := range int(r.Length) {
		c.known[from+i], c.never[from+i] = i < len(data), len(data) == 0
	}
}

// Refuse marks a request as rejected for good, so that Plan does not repeat it. Bytes read before are discarded.
func (p *Pages) Refuse(r Ref) { p.Put(r, nil) }

// Has reports whether all the bytes have been read.
func (p *Pages) Has(r Ref) bool {
	_, ok := p.read(r)
	return ok
}

// open returns the part of a reference from the first byte that has neither been read nor rejected.
func (p *Pages) open(r Ref) (rest Ref, ok bool) {
	c := p.blocks[r.block()]
	for i := range r.Length {
		at := int(r.Offset+i) % half
		if c == nil || !c.known[at] && !c.never[at] {
			r.Offset, r.Length = r.Offset+i, r.Length-i
			return r, true
		}
	}
	return Ref{}, false
}

// read returns the bytes if all are known. They must not be modified.
func (p *Pages) read(r Ref) ([]byte, bool) {
	c := p.blocks[r.block()]
	if c == nil || !r.Valid() {
		return nil, false
	}
	from := int(r.Offset) % half
	for i := range int(r.Length) {
		if !c.known[from+i] {
			return nil, false
		}
	}
	return c.bytes[from : from+int(r.Length)], true
}

func (p *Pages) byteAt(r Ref) (byte, bool) {
	if b, ok := p.read(r.run(1)); ok {
		return b[0], true
	}
	return 0, false
}

// word returns a number, 0 if it was not read.
func (p *Pages) word(r Ref) uint16 {
	if w, ok := p.words(r, 1); ok {
		return w[0]
	}
	return 0
}

// words returns n consecutive numbers: big-endian with 16 bits, as all numbers of modules are.
func (p *Pages) words(r Ref, n int) ([]uint16, bool) {
	b, ok := p.read(r.run(uint8(2 * n)))
	if !ok {
		return nil, false
	}
	out := make([]uint16, n)
	for i := range out {
		out[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return out, true
}

// bit returns one bit; nil: unknown.
func (p *Pages) bit(r Ref, mask byte) *bool {
	b, ok := p.byteAt(r)
	if !ok {
		return nil
	}
	return new(b&mask != 0)
}

// sum is a checksum: the byte at has the low byte of the sum of first to last.
type sum struct {
	first, last, at Ref
	name            string
}

func sumOf(first Ref, last, at uint8, name string) sum {
	return sum{first, first.at(last), first.at(at), name}
}

// covers returns all summed bytes.
func (s sum) covers() Ref { return s.first.run(s.last.Offset - s.first.Offset + 1) }

func (p *Pages) sumFits(s sum) bool {
	b, ok := p.read(s.covers())
	want, there := p.byteAt(s.at)
	if !ok || !there {
		return false
	}
	var got byte
	for _, c := range b {
		got += c
	}
	return got == want
}

// badSums returns the checksums that were read and do not match.
func (p *Pages) badSums(sums []sum) (bad []string) {
	for _, s := range sums {
		if p.Has(s.covers()) && p.Has(s.at) && !p.sumFits(s) {
			bad = append(bad, s.name)
		}
	}
	return bad
}
