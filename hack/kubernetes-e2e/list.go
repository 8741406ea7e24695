package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

const (
	// passes stands in the list beside a test that is run, slow beside one that is run when all are wanted; anything else
	// there is the reason why a test is not.
	passes = "passes"
	slow   = "passes, slow"
	// title stands over the names of the tests.
	title = "upstream's test"
)

// test is a test of upstream by its names, without the tags in brackets.
type test struct{ section, name string }

// row is what the list says about a test.
type row struct{ result, mirror string }

// list is the tables of docs/conformance.md: a section for each of upstream's, a row for each test.
type list map[test]row

// sigs are the groups of maintainers whose tests the list is about.
var sigs = []string{"[sig-api-machinery]", "[sig-auth]"}

var (
	tags       = regexp.MustCompile(`\s*\[[^\]]*\]`)
	identifier = regexp.MustCompile("`(\\w+)`")
	// declaration is that of a test, in Go or in Rust.
	declaration = regexp.MustCompile(`(?m)^func (Test\w+)\(|#\[(?:tokio::)?test\b[^\n]*\]\s+(?:async )?fn (\w+)\(`)
)

// readList reads the tables under headings of the third level. It fails for a row that does not say enough.
func readList(path string) (list, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := list{}
	section := ""
	for number, line := range strings.Split(string(content), "\n") {
		if heading, ok := strings.CutPrefix(line, "#"); ok {
			section, _ = strings.CutPrefix(heading, "## ")
			if section == heading {
				section = ""
			}
			continue
		}
		if section == "" || !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for index := range cells {
			cells[index] = strings.TrimSpace(cells[index])
		}
		if cells[0] == title {
			continue
		}
		if len(cells) != 3 || cells[0] == "" || cells[1] == "" || cells[2] == "" {
			return nil, fmt.Errorf("%s:%d: not a test, its result and its mirror: %s", path, number+1, line)
		}
		key := test{section, cells[0]}
		if _, twice := found[key]; twice {
			return nil, fmt.Errorf("%s:%d: a second time: %s", path, number+1, line)
		}
		found[key] = row{cells[1], cells[2]}
	}
	return found, nil
}

// choose gives the tests to run, without slow ones or with them, or everything that is wrong with the list.
func (l list) choose(specs types.SpecReports, all bool) (types.SpecReports, error) {
	problems := l.missingMirrors()
	var chosen types.SpecReports
	used := map[test]bool{}
	for _, spec := range specs {
		if !listed(spec) {
			continue
		}
		key := named(spec)
		used[key] = true
		switch found, ok := l[key]; {
		case !ok:
			problems = append(problems, fmt.Errorf("not in the list: %q in %q", key.name, key.section))
		case found.result == passes, found.result == slow && all:
			chosen = append(chosen, spec)
		}
	}
	for key := range l {
		if !used[key] {
			problems = append(problems, fmt.Errorf("upstream has no such test: %q in %q", key.name, key.section))
		}
	}
	return chosen, errors.Join(problems...)
}

// listed tells whether a test is of one of the groups.
func listed(spec types.SpecReport) bool {
	return len(spec.ContainerHierarchyTexts) > 0 && slices.ContainsFunc(sigs, func(sig string) bool {
		return strings.HasPrefix(spec.ContainerHierarchyTexts[0], sig)
	})
}

func named(spec types.SpecReport) test {
	texts := append(append([]string{}, spec.ContainerHierarchyTexts...), spec.LeafNodeText)
	for index, text := range texts {
		texts[index] = strings.TrimSpace(tags.ReplaceAllString(text, ""))
	}
	if texts[0] == "" {
		// Nothing but tags: the one after the group's is the name.
		_, own, _ := strings.Cut(spec.ContainerHierarchyTexts[0], "] [")
		texts[0], _, _ = strings.Cut(own, "]")
	}
	return test{texts[0], strings.Join(texts[1:], " ")}
}

// missingMirrors finds the names, in backticks in the third column, of tests that we do not have.
func (l list) missingMirrors() []error {
	ours := map[string]bool{}
	for _, folder := range []string{"hack/conformance", "tests/tests/it", "apiserver/src"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".rs") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, match := range declaration.FindAllSubmatch(content, -1) {
				ours[string(match[1])+string(match[2])] = true
			}
			return err
		}); err != nil {
			return []error{err}
		}
	}
	var missing []error
	for key, found := range l {
		for _, match := range identifier.FindAllStringSubmatch(found.mirror, -1) {
			if !ours[match[1]] {
				missing = append(missing, fmt.Errorf("no test %s, which is to mirror %q", match[1], key.name))
			}
		}
	}
	return missing
}
