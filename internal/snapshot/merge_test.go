package snapshot

import (
	"reflect"
	"testing"
)

// TestMerge: each section and each list of a node is taken over; a missing section leaves the existing one.
func TestMerge(t *testing.T) {
	for field := range reflect.TypeFor[Node]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			var n, o Node
			from := reflect.ValueOf(&o).Elem().FieldByIndex(field.Index)
			switch field.Type.Kind() {
			case reflect.Pointer:
				from.Set(reflect.New(field.Type.Elem()))
			case reflect.Slice:
				from.Set(reflect.MakeSlice(field.Type, 1, 1))
			default:
				t.Fatalf("a section is a pointer, what all collectors add to is a slice; this is a %s", field.Type)
			}
			n.Merge(&o)
			if !reflect.DeepEqual(n, o) {
				t.Errorf("not taken over: add %s to Node.Merge", field.Name)
			}
			n.Merge(&Node{})
			if !reflect.DeepEqual(n, o) {
				t.Error("an absent section replaces one that is there")
			}
		})
	}
}
