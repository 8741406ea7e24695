package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

const (
	// processes is how many of them run tests at a time.
	processes = 4
	// shareVariable says which share of the tests is a process's own.
	shareVariable = "KUBERNETES_E2E_SHARE"
)

// runAll runs tests that may have company in several processes, and then the others in this one; a process that was
// started by it runs its share.
func runAll(chosen types.SpecReports) error {
	// Each process has an order of its own, by the second in which it began, and all have to share out alike.
	slices.SortFunc(chosen, func(one, other types.SpecReport) int { return strings.Compare(one.FullText(), other.FullText()) })
	shares := make([][]string, processes)
	var alone []string
	together := 0
	for _, spec := range chosen {
		if spec.IsSerial {
			alone = append(alone, spec.FullText())
			continue
		}
		next := together % processes
		together++
		shares[next] = append(shares[next], spec.FullText())
	}
	if text := os.Getenv(shareVariable); text != "" {
		share, err := strconv.Atoi(text)
		if err != nil || share < 0 || share >= processes {
			return fmt.Errorf("%s is no share: %q", shareVariable, text)
		}
		return runSpecs(shares[share])
	}
	return errors.Join(runShares(), runSpecs(alone))
}

func runShares() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var failures []error
	started := make([]*exec.Cmd, 0, processes)
	for share := range processes {
		command := exec.Command(program)
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", shareVariable, share))
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		if err := command.Start(); err != nil {
			failures = append(failures, err)
			continue
		}
		started = append(started, command)
	}
	for _, command := range started {
		if err := command.Wait(); err != nil {
			failures = append(failures, fmt.Errorf("a share of the tests: %w", err))
		}
	}
	return errors.Join(failures...)
}
