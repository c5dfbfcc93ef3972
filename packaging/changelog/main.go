// Command changelog checks the format of CHANGELOG.md, https://keepachangelog.com/en/1.1.0/.
//
//	go run ./packaging/changelog                 the file is well formed
//	go run ./packaging/changelog -release 0.1.0  print the section of the version
//	go run ./packaging/changelog -since main     require an entry for a change of the program since then
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

const name = "CHANGELOG.md"

func main() {
	release := flag.String("release", "", "print the section of this `version`; exit 1 if it has none")
	since := flag.String("since",
		"", "exit 1 if the program differs from this `commit` and the unreleased section does not")
	flag.Parse()
	if err := run(context.Background(), *release, *since); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, release, since string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	log, err := parse(string(text))
	if err != nil {
		return err
	}
	if release != "" {
		s, err := log.release(release)
		if err != nil {
			return err
		}
		fmt.Print(s.markdown())
	}
	if since != "" {
		return changedSince(ctx, since, log)
	}
	return nil
}
