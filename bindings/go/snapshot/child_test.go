package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// childVariable names the part of a test that a process of its own runs.
const childVariable = "NUTHATCH_TEST_CHILD"

// isChild runs the part of a test that needs a process of its own, if this process was started for
// one, and returns whether it was.
func isChild() bool {
	part := os.Getenv(childVariable)
	if part == "" {
		return false
	}
	fmt.Println(readTruncated(part, os.Args[len(os.Args)-1]))
	return true
}

// readTruncated opens a file, truncates it, and then reads it. It returns the code of the error.
func readTruncated(part, path string) Code {
	var options []Option
	if part == "lookup-with-option" {
		options = append(options, WithFaultErrors())
	}
	if part == "huge-pages" {
		options = append(options, WithResidency(HugePages))
	}
	s, err := Open(path, options...)
	if err != nil {
		return CodeOf(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		panic(err)
	}
	switch part {
	case "lookup", "lookup-with-option", "huge-pages":
		_, err = s.Get("entry 10")
	case "many":
		err = s.GetMany([]string{"entry 10"}, make([]Value, 1))
	case "iteration":
		err = firstError(s)
	case "verify":
		err = s.Verify()
	}
	if err == nil {
		return "none"
	}
	return CodeOf(err)
}

// TestTruncatedFile truncates a file that a process of its own has open, and reads it in each way.
func TestTruncatedFile(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ part, expected string }{
		{"lookup-with-option", "unreadable"},
		{"many", "unreadable"},
		{"iteration", "unreadable"},
		{"verify", "unreadable"},
		{"huge-pages", "none"},
		{"lookup", "fatal error: fault"},
	} {
		t.Run(c.part, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "truncated.nut")
			writeFile(t, path, readFile(t, filepath.Join(vectors, "v1", "entries-20000.nut")))
			child := exec.Command(program, path)
			child.Env = append(os.Environ(), childVariable+"="+c.part)
			output, _ := child.CombinedOutput()
			if !strings.Contains(string(output), c.expected) {
				t.Errorf("expected %q, found %s", c.expected, output)
			}
		})
	}
}
