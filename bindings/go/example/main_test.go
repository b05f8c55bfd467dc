package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeShowsThisProgram compares the program with README.md.
func TestReadmeShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "README.md shows this program.\n")
	if !strings.Contains(string(readme), "```go\n"+code+"```\n") {
		t.Error("README.md does not have the program of main.go")
	}
}

// Example runs the program with a small file.
func Example() {
	os.Args = []string{"example", filepath.Join("testdata", "users.nut")}
	main()
	// Output:
	// Ada true
	// 36 false
	// [admin early] <nil>
	// user:1.tags [admin early]
	// user:2.name Grace
	// user:1.name Ada
	// user:2.age 45
	// user:1.age 36
}
