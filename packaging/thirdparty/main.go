// Command thirdparty lists the modules compiled into rdma_exporter with their licences, and fails if one is unknown or
// not permissive.
//
//	go run ./packaging/thirdparty -o THIRD_PARTY -arch arm64 -cgo=false
//	go run ./packaging/thirdparty -docs docs/dependencies.md -check
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
)

func main() {
	var b build
	flag.StringVar(&b.arch, "arch", runtime.GOARCH, "GOARCH of the binary")
	flag.BoolVar(&b.cgo, "cgo", true, "whether the binary is built with cgo")
	notices := flag.String("o", "", "write the modules and their licence texts to this `file`")
	docs := flag.String("docs", "", "write the page on dependencies to this `file`")
	check := flag.Bool("check", false, "write nothing; exit 1 if a file is out of date")
	flag.Parse()
	if err := run(context.Background(), b, *notices, *docs, *check); err != nil {
		fmt.Fprintln(os.Stderr, "thirdparty:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b build, notices, docs string, check bool) error {
	modules, err := b.modules(ctx)
	if err != nil {
		return err
	}
	if err := permissive(modules); err != nil {
		return err
	}
	if notices != "" {
		if err := write(notices, noticesText(modules), check); err != nil {
			return err
		}
	}
	if docs == "" {
		return nil
	}
	direct, err := directOf("go.mod")
	if err != nil {
		return err
	}
	if direct, err = importers(ctx, direct); err != nil {
		return err
	}
	return write(docs, page(direct, modules), check)
}

func write(name string, text []byte, check bool) error {
	if !check {
		return os.WriteFile(name, text, 0o644)
	}
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(old, text) {
		return errors.New(name + " is out of date: make update")
	}
	return nil
}
