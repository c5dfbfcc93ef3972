package main

import (
	"bufio"
	"bytes"
	"os"
	"testing"
)

// TestDay: the rule test in the repository is as written.
func TestDay(t *testing.T) {
	want, err := os.ReadFile("../../rules/tests/link_ber_healthy.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	w := bufio.NewWriter(&got)
	write(w, 1, "../node")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("rules/tests/link_ber_healthy.test.yml differs: go run ./test/ber >rules/tests/link_ber_healthy.test.yml")
	}
}
